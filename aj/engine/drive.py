"""One job on its way from queued to its end, in a thread of its own.

Everything it decides follows from the record and from what the driver finds, so it may be cut off
between any two lines and begun again by the next daemon: a step that was done is found done, a start
that happened is found running or ended, an outcome that was written is not written again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from aj.backend.protocol import Driver, Fate, Observation, SetupFailed, SetupInvalid
from aj.base import crash
from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, NotFound, Refused
from aj.engine import scheduler
from aj.engine.lifecycle import Lifecycle
from aj.model.json import Json
from aj.model.state import SETUP, JobState, Mover
from aj.model.workload import Workload
from aj.store import jobs
from aj.store.layout import Layout

GRACE_S = 30.0  # between TERM and KILL when nobody said otherwise
AGAIN_S = 5.0  # after a disk refused to take what has to be written
HOST_LOST = "host-lost"

Log = Callable[[str], None]


class Drive:
    """Carries jobs of one daemon. `stop` lets go of them all; their processes go on."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        layout: Layout,
        drivers: Mapping[str, Driver],
        clock: Clock,
        stop: threading.Event,
        log: Log,
    ) -> None:
        self._lifecycle = lifecycle
        self._layout = layout
        self._drivers = drivers
        self._clock = clock
        self._stop = stop
        self._log = log

    @property
    def is_leaving(self) -> bool:
        """Whether all jobs are being let go."""
        return self._stop.is_set()

    def carry(self, job_id: str) -> None:
        """Bring a job as far as it goes now: to its end, or back into the line."""
        while not self._stop.is_set():
            try:
                if self._set_up(job_id):
                    self._watch(job_id)
                return
            except NotFound:
                return  # it was deleted meanwhile
            except Refused as error:
                self._log(f"job {job_id}: {error}")
                if self._lifecycle.get(job_id).state.is_final:
                    return  # somebody else was first, for example the user
                raise
            except AjError as error:
                self._log(f"job {job_id}: {error}; tried again in {AGAIN_S:g} s")
                self._clock.wait(self._stop, AGAIN_S)

    # setup

    def _set_up(self, job_id: str) -> bool:
        """Go through the setup that is left; False when the job does not run after it."""
        job = self._lifecycle.get(job_id)
        if not job.state.is_setup:
            return job.state in (JobState.RUNNING, JobState.FINALIZING)
        driver = self._drivers[job.service]
        for state in driver.steps:
            if SETUP.index(state) < SETUP.index(job.state):
                continue
            if job.terminating_since is not None and not self._is_running(job):
                self._end_unstarted(job)
                return False
            ended = self._step(state, job, driver)
            if ended:
                return False
            job = self._lifecycle.get(job_id)
        self._lifecycle.move(job_id, JobState.RUNNING, Mover.DRIVER)
        crash.point("drive.after-running")
        return True

    def _step(self, state: JobState, job: Workload, driver: Driver) -> bool:
        """Do one step and keep its facts; True when it ended the setup."""
        if job.state is not state:
            job = self._lifecycle.move(job.id, state, Mover.DRIVER)
        try:
            facts = driver.step(state, self._whole(job), self._layout.job(job.id))
        except SetupInvalid as error:
            self._lifecycle.move(job.id, JobState.INVALID, Mover.DRIVER, error.message, reason="invalid")
            return True
        except SetupFailed as error:
            self._try_later(job, error.message, error.cause)
            return True
        except (AjError, OSError) as error:
            self._try_later(job, str(error), "other")
            return True
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            self._lifecycle.move(job.id, JobState.FAILED, Mover.DRIVER, words, reason="internal-error")
            raise
        self._keep(job, facts)
        crash.point(f"drive.after-{state}")
        return False

    def _keep(self, job: Workload, facts: Mapping[str, Json]) -> None:
        found = dict(facts)
        notes = found.pop("notes", ())
        words = tuple(str(note) for note in notes) if isinstance(notes, list | tuple) else ()
        new = tuple(note for note in words if note not in job.notes)
        if found or new:
            self._lifecycle.note(job.id, facts={**job.facts, **found}, notes=job.notes + new)

    def _try_later(self, job: Workload, message: str, cause: str) -> None:
        """Put a job whose setup failed back into the line, or give it up after the last try."""
        now = self._clock.now()
        later = scheduler.retry(job, cause=cause, message=message, now=now)
        if later is None:
            words = f"setup failed {job.setup_attempt} times, the last time: {message}"
            self._lifecycle.move(job.id, JobState.FAILED, Mover.DRIVER, words, reason="setup-attempts-exhausted")
            return
        self._lifecycle.move(job.id, JobState.RETRYING, Mover.DRIVER, message, retry=later)
        back_in_line(self._lifecycle, job.id)

    def _is_running(self, job: Workload) -> bool:
        """Whether a start happened already, seen from a record that a crash kept behind."""
        if job.state is not JobState.STARTING:
            return False
        return self._look(job).fate is not Fate.LOST

    def _look(self, job: Workload) -> Observation:
        return self._drivers[job.service].observe(job, self._layout.job(job.id))

    def _end_unstarted(self, job: Workload) -> None:
        if job.state is JobState.STARTING:
            # a start that an earlier daemon asked for may still be on its way: it finds this and goes away
            self._drivers[job.service].terminate(job, self._layout.job(job.id), 0)
        self._lifecycle.move(job.id, JobState.TERMINATED, Mover.USER, "terminated before it ran", reason="terminated")

    # running

    def _watch(self, job_id: str) -> None:
        job = self._lifecycle.get(job_id)
        driver, folder = self._drivers[job.service], self._layout.job(job_id)
        if job.terminating_since is not None:
            driver.terminate(job, folder, GRACE_S if job.grace_s is None else job.grace_s)
        elif job.recover_for is not None:
            driver.terminate(job, folder, GRACE_S)
        seen = driver.wait(job, folder, self._stop)
        if seen.fate is Fate.RUNNING:
            return  # the daemon is leaving
        crash.point("finish.before-outcome")
        self._finish(job_id, seen)
        crash.point("finish.after-outcome")

    def _finish(self, job_id: str, seen: Observation) -> None:
        job = self._lifecycle.get(job_id)
        facts: dict[str, object] = {"exit_code": seen.exit_code, "oom_killed": seen.oom_killed}
        if seen.ended_at is not None:
            facts["completed_at"] = rfc3339(seen.ended_at)  # nobody of us may have been there
        if job.terminating_since is not None:
            words = seen.message if seen.fate is Fate.EXITED else None
            self._lifecycle.move(job_id, JobState.TERMINATED, Mover.USER, words, reason="terminated", **facts)
        elif job.recover_for is not None:
            self._recover(job_id, job.recover_for)
        elif seen.fate is Fate.LOST:
            self._lifecycle.move(job_id, JobState.FAILED, Mover.DRIVER, seen.message, reason=HOST_LOST, **facts)
        elif seen.exit_code == 0:
            self._lifecycle.move(job_id, JobState.COMPLETED, Mover.DRIVER, seen.message, **facts)
        else:
            reason = "out-of-memory" if seen.oom_killed else "setup-failed" if seen.in_setup else None
            self._lifecycle.move(job_id, JobState.ERRORED, Mover.DRIVER, seen.message, reason=reason, **facts)

    def _recover(self, job_id: str, why: str) -> None:
        """Put a job whose processes were ended back into the line; what it wrote so far stays."""
        self._lifecycle.move(job_id, JobState.RECOVERING, Mover.MONITOR, why)
        self._lifecycle.move(job_id, JobState.QUEUED, Mover.MONITOR, why)

    def _whole(self, job: Workload) -> Workload:
        """The job with what was asked for. Raises SetupInvalid when that is lost, AjError."""
        try:
            return replace(job, spec=jobs.spec(self._layout, job.id))
        except AjError as error:
            if error.code == "damaged-record":
                raise SetupInvalid(error.message) from error
            raise


def back_in_line(lifecycle: Lifecycle, job_id: str) -> None:
    """Let a job wait for its next try; its due time stands in its record."""
    job = lifecycle.get(job_id)
    lifecycle.move(job_id, JobState.QUEUED, Mover.SCHEDULER, job.message, retry=job.retry)


def is_active(job: Workload, drivers: Mapping[str, Driver]) -> bool:
    """Tell whether a job needs a thread that carries it."""
    return job.service in drivers and scheduler.holds(job)
