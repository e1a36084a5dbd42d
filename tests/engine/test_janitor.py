"""What is old goes, what is new stays, and what cannot be cleaned is tried again ever more rarely."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aj.base.clock import rfc3339
from aj.base.errors import AjError
from aj.engine.artifacts import NoArtifacts
from aj.engine.janitor import DAY_S, FIRST_PAUSE_S, LONGEST_PAUSE_S, Janitor, Keep
from aj.engine.lifecycle import Lifecycle
from aj.model.state import JobState
from aj.model.workload import Workload
from aj.store import joblogs, jobs
from tests.conftest import Home, MovedClock
from tests.engine.play import Told
from tests.jobs import workload


class Yardman:
    """A janitor with a driver that does as it is told, and a clock that the test moves."""

    def __init__(self, home: Home, clock: MovedClock, keep: Keep) -> None:
        self.home, self.clock, self.driver = home, clock, Told()
        self.cleaned: list[Workload] = []
        self.lifecycle = Lifecycle(home.layout, clock, lambda _: None)
        self.janitor = Janitor(
            self.lifecycle,
            home.layout,
            {"local": self.driver},
            clock,
            keep,
            self.cleaned.append,
            NoArtifacts(),
            lambda: None,
        )

    def ended(self, job_id: str, *, days_ago: float = 0, cleaned: bool = True, project: str = "_none") -> Path:
        """Put a job there that has ended, with a file that it wrote."""
        at = rfc3339(self.clock.now() - days_ago * DAY_S)
        folder = self.home.layout.job(job_id)
        self.lifecycle.admit(
            workload(
                job_id,
                JobState.COMPLETED,
                completed_at=at,
                cleaned_at=at if cleaned else None,
                project_key=project,
                workdir=str(jobs.work_folder(folder, 0)),
            )
        )
        jobs.work_folder(folder, 0).mkdir(parents=True)
        (jobs.work_folder(folder, 0) / "result").write_text("42\n")
        return folder

    def round(self) -> float:
        return self.janitor.round({"_none"})


@pytest.fixture
def yardman(home: Home, clock: MovedClock) -> Yardman:
    return Yardman(home, clock, Keep(work_s=30 * DAY_S, records_s=90 * DAY_S, log_bytes=0))


def test_outputs_go_after_their_time_and_records_after_theirs(yardman: Yardman) -> None:
    new, old, older = (yardman.ended(f"{days:08x}", days_ago=days) for days in (29, 31, 91))
    foreign = yardman.ended("eeeeeeee", days_ago=91, project="another")
    yardman.round()
    assert (jobs.work_folder(new, 0) / "result").exists()
    assert not (old / "work").exists() and not older.exists()
    assert (jobs.work_folder(foreign, 0) / "result").exists(), "another daemon may own it"
    record = jobs.read(yardman.home.layout, old.name)
    assert (record.workdir, record.notes) == (None, ("its files were removed 31d0h after the end",))
    assert record.is_over and record.submission_revision == 0


def test_old_things_are_looked_for_once_an_hour(yardman: Yardman) -> None:
    folder = yardman.ended("aaaaaaaa", days_ago=29.99)
    yardman.round()
    yardman.clock.move(DAY_S / 24 - 1)
    yardman.round()
    assert (folder / "work").exists()
    yardman.clock.move(1)
    yardman.round()
    assert not (folder / "work").exists()


def test_a_job_that_was_submitted_again_meanwhile_keeps_its_files(yardman: Yardman) -> None:
    folder = yardman.ended("aaaaaaaa", days_ago=99)
    stale = jobs.read(yardman.home.layout, "aaaaaaaa")
    running = replace(stale, state=JobState.RUNNING, completed_at=None, cleaned_at=None)
    yardman.lifecycle.adopt(running)
    yardman.janitor.remove_old({"_none"})
    assert (jobs.work_folder(folder, 0) / "result").exists()


@pytest.mark.rule("LC-16")
def test_a_teardown_that_fails_is_told_and_tried_at_growing_distances(yardman: Yardman) -> None:
    yardman.driver.teardowns = [AjError("processes do not end: 7") for _ in range(14)]
    yardman.ended("aaaaaaaa", cleaned=False)
    pauses = []
    while not yardman.cleaned:
        next_at = yardman.round()
        job = yardman.lifecycle.get("aaaaaaaa")
        if job.cleaned_at is None:
            assert job.cleanup_error == "processes do not end: 7"
            pauses.append(round(next_at - yardman.clock.now()))
            yardman.clock.move(next_at - yardman.clock.now())
    assert pauses[:4] == [FIRST_PAUSE_S, 4, 8, 16] and max(pauses) == LONGEST_PAUSE_S
    job = yardman.lifecycle.get("aaaaaaaa")
    assert (job.cleanup_error, job.cleaned_at is not None) == (None, True)
    yardman.round()
    assert yardman.driver.done.count(("aaaaaaaa", "teardown")) == 15


@pytest.mark.rule("LX-03", "T60")
def test_long_logs_are_cut_at_the_end_with_a_note(yardman: Yardman) -> None:
    folder = yardman.ended("aaaaaaaa", cleaned=False)
    joblogs.attempt_folder(folder, 1).mkdir(parents=True)
    joblogs.log_file(folder, 1, 0, "out").write_bytes(b"x" * 99 + b"\n" * 1 + (b"y" * 99 + b"\n") * 30_000)
    yardman.round()
    notes = yardman.lifecycle.get("aaaaaaaa").notes
    assert len(notes) == 1 and notes[0].startswith("logs/1/rank0.out: the first 1.9 MiB were dropped")
    kept = b"".join(chunk.data for chunk in joblogs.read(folder))
    assert len(kept) >= 1 << 20 and kept.endswith(b"y\n") and kept.startswith(b"y")


def test_a_job_of_a_service_that_is_no_longer_driven_is_still_cleaned(yardman: Yardman) -> None:
    yardman.ended("aaaaaaaa", cleaned=False)
    yardman.lifecycle.note("aaaaaaaa", service="gone")
    yardman.round()
    assert [job.id for job in yardman.cleaned] == ["aaaaaaaa"]
    assert yardman.driver.done == []
