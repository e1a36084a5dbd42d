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


@pytest.mark.rule("C-021b", "QT-02")
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
    events = tuple(Event(number, JobState.QUEUED, rfc3339(NOW + number)) for number in range(1, 12))
    answer = JobAnswer(job(), events, 11, 2)
    shown = view.status(answer, NOW, verbose=False, moment=lambda at: at[11:19]).after
    assert (len(shown), shown[0], shown[1]) == (9, "3 earlier events: `--verbose`", "08:00:04  queued")
    assert len(view.status(answer, NOW, verbose=True).after) == 11
    assert len(view.status(JobAnswer(job(), events[:8], 8), NOW, verbose=False).after) == 8
    item = view.status_item(answer, NOW)
    assert (item["eventsTotal"], item["jobsAhead"]) == (11, 2)


def test_a_line_says_what_matters() -> None:
    assert view.state_line(job(state=JobState.ERRORED, exit_code=3)) == "1a2b3c4d  errored  exit code 3"
    assert view.state_line(job(waiting_for="a slot")) == "1a2b3c4d  queued  a slot"
    assert view.event_line(Event(1, JobState.FAILED, "T", "no disk")) == "T  failed  no disk"


@pytest.mark.rule("C-021")
def test_a_job_of_several_nodes_names_all_its_processes_and_folders() -> None:
    wide = job(nodes=2, processes_per_node=2, workdir="/s/jobs/1a2b3c4d/work/node0")
    item = view.status_item(JobAnswer(wide), NOW)
    assert item["processes_text"] == "4 (2 a node)"
    assert item["files_text"] == "/s/jobs/1a2b3c4d/work (node0 to node1)"
    alone = view.status_item(JobAnswer(replace(wide, nodes=1)), NOW)
    assert (alone["processes_text"], alone["files_text"]) == ("2", "/s/jobs/1a2b3c4d/work/node0")


@pytest.mark.rule("C-022", "LC-18")
def test_what_is_new_of_a_job_is_told_once() -> None:
    began = Event(1, JobState.QUEUED, rfc3339(NOW - 5))
    waits = JobAnswer(job(waiting_for="a free slot", last_event=began), (began,), 1)
    shown, events = view.news(waits, view.Shown(), NOW)
    assert [event.message for event in events] == [None, "a free slot"]
    assert view.news(waits, shown, NOW) == (shown, [])
    shown, events = view.news(JobAnswer(job(waiting_for="memory"), (began,), 1), shown, NOW)
    assert [(event.message, event.number) for event in events] == [("memory", 1)]
    ran = Event(2, JobState.RUNNING, rfc3339(NOW))
    assert view.news(JobAnswer(job(state=JobState.RUNNING), (began, ran), 2), shown, NOW)[1] == [ran]
