"""One door for every change of state: what is allowed, what it leaves on disk, and who hears of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base import paths
from aj.base.errors import NotFound, Refused
from aj.base.settings import Settings
from aj.engine.lifecycle import Lifecycle
from aj.model.state import JobState, Mover
from aj.model.workload import Workload
from aj.store import jobs, jsonl
from aj.store.layout import Layout
from tests.conftest import Home, MovedClock
from tests.jobs import workload

S = JobState
SETUP = ["provisioning", "initializing", "downloading", "syncing", "starting"]
FINAL = ["completed", "errored", "failed", "invalid", "terminated"]

# What the tables of the life of a job say, written down once more and by hand: mover -> from -> to.
TABLE: dict[str, dict[str, str]] = {
    "scheduler": {"queued": "provisioning failed", "retrying": "queued"},
    "driver": {
        "queued": "running invalid",
        "provisioning": "initializing downloading syncing starting running retrying failed invalid",
        "initializing": "downloading syncing starting running retrying failed invalid",
        "downloading": "syncing starting running retrying failed invalid",
        "syncing": "starting running retrying failed invalid",
        "starting": "running retrying failed invalid",
        "running": "finalizing completed errored failed retrying invalid",
        "finalizing": "completed errored failed",
    },
    "monitor": {"running": "recovering", "finalizing": "recovering", "recovering": "running queued failed"},
    "user": {
        **dict.fromkeys(("queued", *SETUP, "running", "finalizing", "retrying", "recovering"), "terminated"),
        **dict.fromkeys(FINAL, "queued"),
    },
    "submit": {},
}


def allowed(source: JobState, target: JobState, by: Mover) -> bool:
    return target.value in TABLE[by.value].get(source.value, "").split()


def made(layout: Layout, clock: MovedClock, state: JobState, **changes: object) -> tuple[Lifecycle, list[Workload]]:
    published: list[Workload] = []
    lifecycle = Lifecycle(layout, clock, published.append)
    lifecycle.admit(workload(state=state, **changes))
    published.clear()
    return lifecycle, published


def layout_at(root: Path) -> Layout:
    return Layout(paths.folders(Settings({"AJ_STATE_DIR": str(root / "state"), "HOME": str(root)})))


@pytest.mark.rule("LC-01", "LC-05", "LC-06")
@pytest.mark.parametrize("by", list(Mover))
def test_every_move_is_made_or_refused_as_the_table_says(home: Home, clock: MovedClock, by: Mover) -> None:
    for source in S:
        lifecycle, published = made(home.layout, clock, source, cleaned_at="2026-01-31T13:00:00.000000Z")
        for target in (target for target in S if not allowed(source, target, by)):
            with pytest.raises(Refused):
                lifecycle.move("1a2b3c4d", target, by)
        assert published == [] and jobs.read(home.layout, "1a2b3c4d").state is source
        for target in (target for target in S if allowed(source, target, by)):
            jobs.remove(home.layout, "1a2b3c4d")
            lifecycle, published = made(home.layout, clock, source, cleaned_at="2026-01-31T13:00:00.000000Z")
            assert lifecycle.move("1a2b3c4d", target, by).state is target
            assert [job.state for job in published] == [target]
            assert jobs.read(home.layout, "1a2b3c4d").state is target
        jobs.remove(home.layout, "1a2b3c4d")


@given(st.lists(st.tuples(st.sampled_from(S), st.sampled_from(Mover), st.booleans()), max_size=30))
@settings(max_examples=60, deadline=None)
@pytest.mark.rule("T48", "LC-15")
def test_no_walk_leaves_an_end_without_a_resubmission_and_its_history_is_whole(
    tmp_path_factory: pytest.TempPathFactory, walk: list[tuple[JobState, Mover, bool]]
) -> None:
    layout, clock = layout_at(tmp_path_factory.mktemp("walk")), MovedClock()
    lifecycle, _ = made(layout, clock, S.QUEUED)
    seen = [S.QUEUED]
    revision = 0
    for target, by, cleans in walk:
        before = lifecycle.get("1a2b3c4d")
        clock.move(1)
        if before.state.is_final and cleans:
            before = lifecycle.note("1a2b3c4d", cleaned_at="2026-01-31T13:00:00.000000Z")
        try:
            after = lifecycle.move("1a2b3c4d", target, by)
        except Refused:
            is_early = before.state.is_final and target is S.QUEUED and before.cleaned_at is None
            assert is_early or not allowed(before.state, target, by)
            continue
        seen.append(target)
        if before.state.is_final:
            assert (by, target) == (Mover.USER, S.QUEUED) and before.cleaned_at is not None
            revision += 1
            assert after.completed_at is None and after.cleaned_at is None and after.setup_attempt == 0
        assert after.submission_revision == revision
        assert (after.completed_at is not None) == after.state.is_final
    found = jobs.read(layout, "1a2b3c4d")
    history = list(jsonl.read(jobs.events_file(layout.job("1a2b3c4d")), lambda where: pytest.fail(where)))
    assert [line["state"] for line in history] == [state.value for state in seen]
    assert [line["number"] for line in history] == list(range(1, len(seen) + 1))
    assert found.last_event is not None and found.last_event.number == len(seen)


@pytest.mark.rule("LC-13")
def test_the_first_of_two_ends_wins_and_the_other_is_a_conflict(home: Home, clock: MovedClock) -> None:
    lifecycle, published = made(home.layout, clock, S.RUNNING)
    won, lost = [], []

    def end(target: JobState, by: Mover) -> None:
        try:
            won.append(lifecycle.move("1a2b3c4d", target, by).state)
        except Refused as error:
            lost.append(error.code)

    ends = [(S.COMPLETED, Mover.DRIVER), (S.TERMINATED, Mover.USER), (S.ERRORED, Mover.DRIVER)] * 3
    threads = [threading.Thread(target=end, args=one) for one in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and lost == ["already-ended"] * 8
    assert [job.state for job in published] == won
    assert jobs.read(home.layout, "1a2b3c4d").state is won[0]


@pytest.mark.rule("LC-15", "LC-16")
def test_a_job_that_is_not_clean_is_not_run_again_and_says_why(home: Home, clock: MovedClock) -> None:
    lifecycle, _ = made(home.layout, clock, S.ERRORED)
    lifecycle.note("1a2b3c4d", cleanup_error="processes do not end: 77")
    with pytest.raises(Refused, match="processes do not end: 77") as error:
        lifecycle.move("1a2b3c4d", S.QUEUED, Mover.USER)
    assert error.value.code == "not-cleaned"


def test_counters_and_times_follow_the_moves(home: Home, clock: MovedClock) -> None:
    lifecycle, _ = made(home.layout, clock, S.QUEUED)
    for setup in (1, 2):
        job = lifecycle.move("1a2b3c4d", S.PROVISIONING, Mover.SCHEDULER)
        assert job.setup_attempt == setup
        lifecycle.move("1a2b3c4d", S.STARTING, Mover.DRIVER)
        job = lifecycle.move("1a2b3c4d", S.RETRYING if setup == 1 else S.RUNNING, Mover.DRIVER)
        if setup == 1:
            lifecycle.move("1a2b3c4d", S.QUEUED, Mover.SCHEDULER)
    assert (job.attempt, job.started_at is not None) == (2, True)
    job = lifecycle.move("1a2b3c4d", S.RECOVERING, Mover.MONITOR)
    assert (job.recoveries, job.setup_attempt) == (1, 0)
    lifecycle.move("1a2b3c4d", S.FAILED, Mover.MONITOR, "gone", reason="host-lost")
    job = lifecycle.note("1a2b3c4d", cleaned_at="2026-01-31T13:00:00.000000Z", resubmit_when_clean=True)
    assert job.completed_at is not None and job.reason == "host-lost" and job.message == "gone"
    again = lifecycle.move("1a2b3c4d", S.QUEUED, Mover.USER)
    assert (again.submission_revision, again.reason, again.recoveries, again.attempt) == (1, None, 0, 2)
    assert again.created_at == job.created_at and again.submitted_at != job.submitted_at
    assert not again.resubmit_when_clean


def test_whoever_waits_is_woken_by_a_change(home: Home, clock: MovedClock) -> None:
    lifecycle, _ = made(home.layout, clock, S.RUNNING)
    woken: list[bool] = []
    thread = threading.Thread(
        target=lambda: woken.append(lifecycle.wait(lambda: lifecycle.get("1a2b3c4d").state is S.COMPLETED, 5))
    )
    thread.start()
    lifecycle.move("1a2b3c4d", S.COMPLETED, Mover.DRIVER)
    thread.join()
    assert woken == [True]
    assert not lifecycle.wait(lambda: False, 0.01)


def test_a_job_that_was_forgotten_is_read_from_disk(home: Home, clock: MovedClock) -> None:
    lifecycle, _ = made(home.layout, clock, S.COMPLETED)
    lifecycle.note("1a2b3c4d", cleaned_at="2026-01-31T13:00:00.000000Z")
    lifecycle.forget("1a2b3c4d")
    assert lifecycle.living() == [] and lifecycle.get("1a2b3c4d").is_over
    lifecycle.note("1a2b3c4d", workdir=None)
    assert lifecycle.living() == [], "a note does not bring a job that is over back into memory"
    assert lifecycle.move("1a2b3c4d", S.QUEUED, Mover.USER).submission_revision == 1
    assert [job.id for job in lifecycle.living()] == ["1a2b3c4d"]
    with pytest.raises(NotFound):
        lifecycle.get("ffffffff")


def test_an_event_line_that_the_disk_refused_is_written_with_the_next(home: Home, clock: MovedClock) -> None:
    lifecycle, _ = made(home.layout, clock, S.QUEUED)
    path = jobs.events_file(home.layout.job("1a2b3c4d"))
    kept = path.with_name("kept")
    path.rename(kept)
    path.mkdir()  # a file that cannot be written
    lifecycle.move("1a2b3c4d", S.PROVISIONING, Mover.SCHEDULER)
    assert jobs.read(home.layout, "1a2b3c4d").state is S.PROVISIONING
    path.rmdir()
    kept.rename(path)
    lifecycle.move("1a2b3c4d", S.INITIALIZING, Mover.DRIVER)
    states = [line["state"] for line in jsonl.read(path, lambda where: pytest.fail(where))]
    assert states == ["queued", "provisioning", "initializing"]
