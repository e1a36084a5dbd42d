"""Jobs as a caller sees them: found by any of their names, waited for, ended, run again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from aj.base.errors import NotFound, Refused, TimedOut, UserError
from aj.client.client import Client
from aj.client.jobs import choose
from aj.model.state import JobState
from aj.model.ticket import Mode, Outcome, Submitted, Ticket, TicketState
from aj.model.workload import Workload
from tests.daemon.inside import Inside
from tests.daemon.small import spec, workload


@pytest.fixture
def client(inside: Inside) -> Iterator[Client]:
    with Client(inside.home.settings) as client:
        yield client


def ticket(aj_id: str, name: str, azure_name: str | None = None) -> Ticket:
    result = Submitted(azure_name, "aml://ws/x") if azure_name else None
    return Ticket(
        f"q-{aj_id}",
        aj_id,
        Mode.DIRECT,
        TicketState.COMPLETED,
        name,
        "aml",
        "t",
        1,
        "now",
        Outcome.SUBMITTED,
        result=result,
    )


def job(job_id: str, name: str) -> Workload:
    return replace(workload(job_id, JobState.RUNNING), name=name)


JOBS = (job("aaaaaaaa", "train_a"), job("mine", "train_b"), job("dddddddd", "twin"))
TICKETS = (
    ticket("aaaaaaaa", "train_a"),
    ticket("bbbbbbbb", "train_c", "remote-b"),
    ticket("cccccccc", "twin", "aaaaaaaa"),
)


@pytest.mark.rule("C-005", "C-156")
@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("aaaaaaaa", "aaaaaaaa"),  # an AJ ID wins over a remote name
        ("mine", "mine"),
        ("q-bbbbbbbb", "bbbbbbbb"),
        ("q-mine", "mine"),
        ("remote-b", "bbbbbbbb"),
        ("train_c", "bbbbbbbb"),
        ("train_a", "aaaaaaaa"),
    ],
)
def test_a_job_is_found_by_each_of_its_names(word: str, found: str) -> None:
    assert choose(word, JOBS, TICKETS).id == found


@pytest.mark.rule("C-005")
def test_what_is_found_is_job_and_ticket_together() -> None:
    both = choose("aaaaaaaa", JOBS, TICKETS)
    assert (both.job, both.ticket) == (JOBS[0], TICKETS[0])
    assert choose("bbbbbbbb", JOBS, TICKETS).job is None
    assert choose("mine", JOBS, TICKETS).ticket is None


@pytest.mark.rule("C-005")
def test_a_name_of_two_is_told_with_both() -> None:
    with pytest.raises(UserError, match="`twin` names 2 jobs: cccccccc, dddddddd"):
        choose("twin", JOBS, TICKETS)
    with pytest.raises(NotFound, match="no job `nope`"):
        choose("nope", JOBS, TICKETS)


@pytest.mark.rule("C-005")
def test_names_are_looked_up_at_the_daemon(client: Client, inside: Inside) -> None:
    client.submissions.submit(spec("00000000", "ok"), Mode.DIRECT, wait=True)
    inside.engine.jobs.put(workload("job-1", JobState.RUNNING, project_key="elsewhere-1"))
    assert client.jobs.find("remote-00000000").id == "00000000"
    assert client.jobs.find("name_job-1").id == "job-1"
    with pytest.raises(NotFound):
        client.jobs.find("x/y")


@pytest.mark.rule("C-022", "C-215")
def test_a_wait_gives_every_change_to_the_end(client: Client, inside: Inside) -> None:
    jobs = inside.engine.jobs
    jobs.put(workload("job-1", JobState.QUEUED))
    seen = []
    for answer in client.jobs.wait("job-1"):
        seen.append(answer.workload.state)
        following = {JobState.QUEUED: JobState.RUNNING, JobState.RUNNING: JobState.COMPLETED}
        if target := following.get(answer.workload.state):
            threading.Timer(0.05, jobs.move, ("job-1", target)).start()
    assert seen == [JobState.QUEUED, JobState.RUNNING, JobState.COMPLETED]
    assert [answer.workload.state for answer in client.jobs.wait("job-1", timeout_s=0)] == [JobState.COMPLETED]


@pytest.mark.rule("C-022", "C-076")
def test_a_wait_ends_with_its_time(client: Client, inside: Inside) -> None:
    inside.engine.jobs.put(workload("job-1", JobState.RUNNING))
    waiting = client.jobs.wait("job-1", timeout_s=0.1)
    assert next(waiting).workload.state is JobState.RUNNING
    with pytest.raises(TimedOut, match="job-1 is running"):
        next(waiting)
    with pytest.raises(NotFound):
        next(client.jobs.wait("nope"))


@pytest.mark.rule("C-022")
def test_a_wait_for_cleaning_goes_on_after_the_end(client: Client, inside: Inside) -> None:
    jobs = inside.engine.jobs
    done = workload("job-1", JobState.COMPLETED)
    jobs.put(replace(done, cleaned_at=None))
    assert len(list(client.jobs.wait("job-1"))) == 1
    waiting = client.jobs.wait("job-1", cleaned=True)
    assert next(waiting).workload.cleaned_at is None
    threading.Timer(0.05, jobs.put, (done,)).start()
    assert next(waiting).workload.cleaned_at is not None
    assert list(waiting) == []


@pytest.mark.rule("C-215")
def test_jobs_are_ended_run_again_and_removed(client: Client, inside: Inside) -> None:
    inside.engine.jobs.put(workload("job-1", JobState.RUNNING))
    assert client.jobs.exec_plan("job-1", ["echo", "a b"], rank=1).argv == ("echo", "a b")
    with pytest.raises(Refused):
        client.jobs.resubmit("job-1")
    assert client.jobs.terminate("job-1", grace_s=1).workload.state is JobState.TERMINATED
    assert client.jobs.resubmit("job-1", when_clean=True).workload.state is JobState.QUEUED
    assert [job.id for job in client.jobs.list(states=[JobState.QUEUED]).jobs] == ["job-1"]
    assert client.jobs.delete("job-1").detail == "job-1"
    assert client.jobs.list(all_projects=True).jobs == ()
