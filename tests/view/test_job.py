"""Jobs as records and lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aj.base.clock import rfc3339
from aj.model.state import JobState
from aj.model.workload import Event, Needs, Retry, Workload
from aj.view import job as view
from aj.wire.messages import JobAnswer

NOW = 1_800_000_000.0


def job(**changes: Any) -> Workload:
    made = Workload(
        id="1a2b3c4d",
        name="train_1a2b3c4d",
        service="local",
        template="local",
        project="/p/.azure_jobs",
        project_key="p-1",
        ticket="q-1a2b3c4d",
        state=JobState.QUEUED,
        created_at=rfc3339(NOW - 100),
        submitted_at=rfc3339(NOW - 100),
        needs=Needs(2.0, 1024, 1),
    )
    return replace(made, **changes)


def reasons(answer: JobAnswer) -> list[object]:
    return [item["reason"] for item in view.why(answer).rows]


@pytest.mark.rule("C-021b", "QT-02", "QT-03")
@pytest.mark.parametrize(
    ("answer", "due"),
    [
        (
            JobAnswer(job(waiting_for="2 GPUs are free, 8 are needed"), jobs_ahead=3),
            ["2 GPUs are free, 8 are needed", "3 jobs submitted before it wait too"],
        ),
        (JobAnswer(job()), ["it is next in line"]),
        (JobAnswer(job(state=JobState.STARTING)), ["it is being set up: starting"]),
        (JobAnswer(job(state=JobState.RUNNING)), ["nothing: it runs"]),
        (JobAnswer(job(state=JobState.ERRORED, message="exit code 3")), ["it has ended: errored, exit code 3"]),
        (
            JobAnswer(job(retry=Retry(2, NOW + 5, NOW + 9, "other", "no disk"), terminating_since=rfc3339(NOW))),
            ["attempt 2 was not possible: no disk", "its end was asked for"],
        ),
    ],
)
def test_what_keeps_a_job_from_running(answer: JobAnswer, due: list[str]) -> None:
    assert reasons(answer) == due


@pytest.mark.rule("C-056", "C-021", "LC-20")
def test_the_record_has_its_published_spelling() -> None:
    done = job(
        state=JobState.COMPLETED,
        started_at=rfc3339(NOW - 60),
        completed_at=rfc3339(NOW - 15),
        cleanup_error="device busy",
        exit_code=0,
        deadline_at=NOW,
    )
    item = view.record(done, NOW)
    assert (item["completedAt"], item["cleanedAt"], item["cleanupError"]) == (rfc3339(NOW - 15), None, "device busy")
    assert (item["exitCode"], item["duration_s"], item["claimDeadlineAt"]) == (0, 45.0, rfc3339(NOW))
    assert view.record(job(state=JobState.RUNNING, started_at=rfc3339(NOW - 9.5)), NOW)["duration_s"] == 9.5
    assert view.record(job(), NOW)["duration_s"] is None


@pytest.mark.rule("C-021", "LC-18")
def test_status_tells_the_last_events_and_verbose_all() -> None:
    events = tuple(Event(number, JobState.QUEUED, rfc3339(NOW + number)) for number in range(1, 9))
    answer = JobAnswer(job(), events, 8, 2)
    assert len(view.status(answer, NOW, verbose=False).after) == 5
    assert len(view.status(answer, NOW, verbose=True).after) == 8
    item = view.status_item(answer, NOW)
    assert (item["eventsTotal"], item["jobsAhead"]) == (8, 2)


def test_a_line_says_what_matters() -> None:
    assert view.state_line(job(state=JobState.ERRORED, exit_code=3)) == "1a2b3c4d  errored  exit code 3"
    assert view.state_line(job(waiting_for="a slot")) == "1a2b3c4d  queued  a slot"
    assert view.event_line(Event(1, JobState.FAILED, "T", "no disk")) == "T  failed  no disk"
