"""What a job reads from buckets and leaves in them, as the life of a job sees it: restored, kept up to date, saved.

The places where that happens are here and in `drive`; how bytes travel is somebody else's. A job without
buckets has nothing of all this and goes straight from starting to running to its end.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from aj.base.clock import Clock
from aj.base.errors import AjError
from aj.model.bucket import Checkpoints
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.workload import Workload

EVERY_S = 60.0  # between two savings of a running job: what a lost host costs at most
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0  # between tries of the last saving
LAST_S = 600.0  # for the last saving with all its tries; then the job ends without it
NOT_SAVABLE = "not-savable"  # of an error that another try does not mend
TERMINATED_S = 30.0  # for the last saving of a job that somebody ends


class Artifacts(Protocol):
    """The buckets of jobs. `folder` is the job's own; what the job sees as `/mnt/NAME` stands in its `mnt/NAME`."""

    def check(self, spec: JobSpec) -> None:
        """Look whether the buckets of a request can serve it. Changes nothing. Raises Refused, UserError, AjError."""

    def admit(self, job: Workload) -> Workload:
        """Return a new job, which has its `spec`, with its buckets settled for all its attempts; make what is due.

        Raises as `check`. The same job again finds what was made for it.
        """

    def restores(self, job: Workload) -> bool:
        """Tell whether something has to be there before the job starts."""

    def saves(self, job: Workload) -> bool:
        """Tell whether something of the job is kept in a bucket."""

    def requires(self, job: Workload) -> bool:
        """Tell whether a job has failed whose last upload did not work."""

    def restore(self, job: Workload, folder: Path, stop: threading.Event) -> Mapping[str, Json]:
        """Bring input and checkpoint; return facts as a step does. Raises AjError, SetupFailed, SetupInvalid."""

    def save(self, job: Workload, folder: Path, *, last: bool, stop: threading.Event) -> None:
        """Bring output and checkpoint into their buckets; gives up when `stop` is set.

        Raises AjError; with code `not-savable` when another try would not help.
        """

    def checkpoints(self, job: Workload, folder: Path) -> Checkpoints | None:
        """Tell where the checkpoints of a job are and what has reached that place; None when it has none."""

    def remove(self, job: Workload, folder: Path) -> None:
        """Remove what lives no longer than the job. Raises AjError to be tried again."""


class NoArtifacts:
    """What jobs without buckets have."""

    def check(self, spec: JobSpec) -> None:
        return None

    def admit(self, job: Workload) -> Workload:
        return job

    def requires(self, job: Workload) -> bool:
        return False

    def restores(self, job: Workload) -> bool:
        return False

    def saves(self, job: Workload) -> bool:
        return False

    def restore(self, job: Workload, folder: Path, stop: threading.Event) -> Mapping[str, Json]:
        return {}

    def save(self, job: Workload, folder: Path, *, last: bool, stop: threading.Event) -> None:
        return None

    def checkpoints(self, job: Workload, folder: Path) -> Checkpoints | None:
        return None

    def remove(self, job: Workload, folder: Path) -> None:
        return None


class Keeper:
    """Saves what jobs write, while they run and once more when they have ended."""

    def __init__(self, artifacts: Artifacts, clock: Clock, log: Callable[[str], None]) -> None:
        self._artifacts = artifacts
        self._clock = clock
        self._log = log

    @contextlib.contextmanager
    def beside(self, job: Workload, folder: Path) -> Iterator[None]:
        """Save every minute during the block. A saving that fails is told, and made good by the next."""
        if not self._artifacts.saves(job):
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._again_and_again, args=(job, folder, over), name="save", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _again_and_again(self, job: Workload, folder: Path, over: threading.Event) -> None:
        while not self._clock.wait(over, EVERY_S):
            try:
                self._artifacts.save(job, folder, last=False, stop=over)
            except (AjError, OSError) as error:
                self._log(f"job {job.id}: not saved, tried again in {EVERY_S:g} s: {error}")

    def last(
        self, job: Workload, folder: Path, seconds_left: Callable[[], float], leaving: threading.Event
    ) -> str | None:
        """Save what is there at the end, again until it works; return why it did not within the time.

        `seconds_left` is asked anew all the time, for somebody may end the job meanwhile.
        """
        stop = threading.Event()
        timer = threading.Thread(target=self._give_up, args=(stop, seconds_left, leaving), name="limit", daemon=True)
        timer.start()
        try:
            return self._until_it_works(job, folder, stop)
        finally:
            stop.set()
            timer.join()

    def _until_it_works(self, job: Workload, folder: Path, stop: threading.Event) -> str | None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._artifacts.save(job, folder, last=True, stop=stop)
                return "the time for the last upload was over" if stop.is_set() else None
            except (AjError, OSError) as error:
                words, is_final = str(error), isinstance(error, AjError) and error.code == NOT_SAVABLE
            self._log(f"job {job.id}: the last upload: {words}")
            if is_final or self._clock.wait(stop, pause_s):
                return words
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    def _give_up(self, stop: threading.Event, seconds_left: Callable[[], float], leaving: threading.Event) -> None:
        while not leaving.is_set() and seconds_left() > 0:
            if self._clock.wait(stop, min(1.0, max(0.05, seconds_left()))):
                return
        stop.set()
