"""Who starts next: the oldest that is due, when it fits; and words for the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base.errors import Refused
from aj.engine import scheduler
from aj.engine.scheduler import Place
from aj.model.state import JobState
from aj.model.workload import Needs, Retry, Workload
from tests.jobs import workload

NOW = 1_800_000_000.0
GIB = 1 << 30
NOTHING = Needs()
ROOM = Place(Needs(4.0, 8 * GIB, 2), slots=3)


def job(number: int, needs: Needs = NOTHING, state: JobState = JobState.QUEUED, **changes: object) -> Workload:
    return workload(f"{number:08x}", state, needs=needs, submitted_at=f"2026-01-31T12:{number:02d}:00Z", **changes)


def plan(*jobs: Workload, place: Place = ROOM, now: float = NOW) -> scheduler.Plan:
    return scheduler.plan(jobs, {"local": place}, now)


def test_jobs_start_in_the_order_of_submission_while_they_fit() -> None:
    found = plan(job(3, Needs(1)), job(1, Needs(2)), job(2, Needs(1)))
    assert list(found.starts) == ["00000001", "00000002", "00000003"]
    assert found.waits == {}


def test_a_job_at_the_head_that_does_not_fit_is_not_overtaken() -> None:
    running = job(0, Needs(3), JobState.RUNNING)
    found = plan(running, job(1, Needs(2)), job(2, Needs(1)))
    assert found.starts == {}
    assert found.waits == {
        "00000001": "2 cpus: 1 of 4 are free",
        "00000002": "job 00000001, which is before it in the line",
    }


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (Needs(1.5), "1.5 cpus: 1 of 4 are free"),
        (Needs(memory_bytes=7 * GIB), "7.0 GiB of memory: 6.0 GiB of 8.0 GiB are free"),
        (Needs(gpus=2), "2 GPUs: 1 of 2 are free"),
    ],
)
def test_why_a_job_waits_is_said_with_numbers(needs: Needs, words: str) -> None:
    running = job(0, Needs(3, 2 * GIB, 1), JobState.RUNNING, facts={scheduler.GPUS: [0]})
    assert plan(running, job(1, needs)).waits == {"00000001": words}


def test_one_is_not_many() -> None:
    running = job(0, Needs(4, gpus=2), JobState.RUNNING, facts={scheduler.GPUS: [0, 1]})
    assert plan(running, job(1, Needs(gpus=1))).waits == {"00000001": "1 GPU: 0 of 2 are free"}
    assert plan(running, job(1, Needs(1))).waits == {"00000001": "1 cpu: 0 of 4 are free"}
    with pytest.raises(Refused, match="needs 1 GPU, and this place has 0"):
        scheduler.check_fits(Needs(gpus=1), Place(Needs(4), slots=1))


def test_slots_and_setup_places_are_counted() -> None:
    running = [job(number, state=JobState.RUNNING) for number in range(3)]
    assert plan(*running, job(9)).waits == {"00000009": "a free slot: all 3 are taken"}


@pytest.mark.rule("LC-12")
def test_fifty_jobs_at_most_are_in_setup_and_running_ones_do_not_count() -> None:
    wide = Place(Needs(), slots=1000)
    setup = [job(number, state=JobState.INITIALIZING) for number in range(48)]
    running = [job(number + 100, state=JobState.RUNNING) for number in range(60)]
    waiting = [workload(f"f{number:07x}", submitted_at=f"2026-02-01T00:00:{number:02d}Z") for number in range(4)]
    found = plan(*setup, *running, *waiting, place=wide)
    assert list(found.starts) == ["f0000000", "f0000001"]
    assert "all 50 places" in found.waits["f0000002"]


def test_gpus_are_given_by_number_and_never_twice() -> None:
    running = job(0, Needs(gpus=1), JobState.RUNNING, facts={scheduler.GPUS: [1]})
    place = Place(Needs(gpus=4), slots=9)
    found = plan(running, job(1, Needs(gpus=2)), job(2, Needs(gpus=1)), job(3), place=place)
    assert found.starts == {"00000001": (0, 2), "00000002": (3,), "00000003": ()}


@pytest.mark.rule("QT-04", "LC-06")
def test_a_start_deadline_ends_a_job_that_never_started_and_no_other() -> None:
    late = job(1, deadline_at=NOW)
    retried = job(2, deadline_at=NOW - 9, setup_attempt=1)
    early = job(3, Needs(99), deadline_at=NOW + 5)
    found = plan(late, retried, early)
    assert found.expired == ("00000001",)
    assert list(found.starts) == ["00000002"]
    assert found.next_at == NOW + 5


@pytest.mark.rule("LC-23")
def test_a_job_that_is_not_due_holds_nobody_up_and_says_when_it_is() -> None:
    retry = Retry(3, NOW + 32, NOW + 48, "other", "no space left")
    waiting = job(1, setup_attempt=3, retry=retry)
    found = plan(waiting, job(2))
    assert list(found.starts) == ["00000002"]
    assert found.waits["00000001"].startswith("try 4 of 100 at 20")
    assert found.waits["00000001"].endswith("after: no space left")
    assert found.next_at is not None and NOW + 32 <= found.next_at <= NOW + 48
    assert list(plan(waiting, now=found.next_at).starts) == ["00000001"]


@pytest.mark.rule("LC-07")
def test_pauses_double_from_ten_seconds_to_ten_minutes_and_end_after_a_hundred_tries() -> None:
    middles = []
    for attempt in range(1, 100):
        found = scheduler.retry(job(1, setup_attempt=attempt), cause="other", message="no", now=NOW)
        assert found is not None and found.attempt == attempt
        middle = (found.earliest_at + found.latest_at) / 2 - NOW
        assert found.latest_at - found.earliest_at == pytest.approx(0.4 * middle, rel=1e-3)
        due = scheduler.due(job(1, retry=found))
        assert found.earliest_at <= due <= found.latest_at
        middles.append(round(middle))
    assert middles[:8] == [10, 20, 40, 80, 160, 320, 600, 600] and set(middles[7:]) == {600}
    assert scheduler.retry(job(1, setup_attempt=100), cause="other", message="no", now=NOW) is None


def test_jobs_that_failed_together_do_not_try_together() -> None:
    retry = Retry(1, NOW, NOW + 100, "other", "no")
    assert len({round(scheduler.due(job(number, retry=retry))) for number in range(20)}) > 10


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (Needs(4.5), "needs 4.5 cpus, and this place has 4"),
        (Needs(memory_bytes=9 * GIB), "needs 9.0 GiB of memory, and this place has 8.0 GiB"),
        (Needs(gpus=3), "needs 3 GPUs, and this place has 2"),
    ],
)
def test_a_job_larger_than_the_place_is_refused_with_both_numbers(needs: Needs, words: str) -> None:
    with pytest.raises(Refused, match=words):
        scheduler.check_fits(needs, ROOM)
    scheduler.check_fits(Needs(4, 8 * GIB, 2), ROOM)


needs_of_any_size = st.builds(
    Needs,
    cpus=st.none() | st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    memory_bytes=st.none() | st.integers(1, 8).map(lambda count: count * GIB),
    gpus=st.integers(0, 2),
)


@given(st.lists(needs_of_any_size, max_size=12), st.lists(st.booleans(), max_size=60))
@settings(max_examples=80, deadline=None)
def test_nothing_is_given_twice_order_is_kept_and_every_job_gets_its_turn(sizes: list[Needs], ends: list[bool]) -> None:
    jobs = {f"{number:08x}": job(number, needs) for number, needs in enumerate(sizes)}
    started: list[str] = []
    pattern = iter(ends)
    for _ in range(200):
        found = plan(*jobs.values())
        for name, gpus in found.starts.items():
            jobs[name] = replace(jobs[name], state=JobState.RUNNING, facts={scheduler.GPUS: list(gpus)})
            started.append(name)
        running = [one for one in jobs.values() if one.state is JobState.RUNNING]
        taken = [index for one in running for index in scheduler.gpu_indices(one)]
        assert len(taken) == len(set(taken)) == sum(one.needs.gpus for one in running)
        assert sum(one.needs.cpus or 0 for one in running) <= 4
        assert sum(one.needs.memory_bytes or 0 for one in running) <= 8 * GIB
        assert len(running) <= 3
        for one in running:
            if next(pattern, True):
                jobs[one.id] = replace(one, state=JobState.COMPLETED)
    assert started == sorted(jobs)
