"""One job on its way from queued to its end, in a thread of its own.

Everything it decides follows from the record and from what the driver finds, so it may be cut off
between any two lines and begun again by the next daemon: a step that was done is found done, a start
that happened is found running or ended, an outcome that was written is not written again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from aj.backend.protocol import Driver, Fate, Observation, Rehearses, SetupFailed, SetupInvalid
from aj.base import crash
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError, NotFound, Refused
from aj.engine import scheduler
from aj.engine.artifacts import LAST_S, TERMINATED_S, Artifacts, Keeper
from aj.engine.lifecycle import Lifecycle, without_host
from aj.engine.recover import Recovery
from aj.model.json import Json
from aj.model.state import SETUP, JobState, Mover
from aj.model.workload import Workload
from aj.store import jobs
from aj.store.layout import Layout

GRACE_S = 30.0  # between TERM and KILL when nobody said otherwise
AGAIN_S = 5.0  # after a disk refused to take what has to be written
HOST_LOST = "host-lost"
NOT_SAVED = "output-not-saved"
LOST_LATE = "the host was lost before the last upload"
# What fails here says something of the host itself, so the next try gets another one.
HOST_STEPS = (JobState.PROVISIONING, JobState.INITIALIZING)

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
        artifacts: Artifacts,
    ) -> None:
        self._lifecycle = lifecycle
        self._layout = layout
        self._drivers = drivers
        self._clock = clock
        self._stop = stop
        self._log = log
        self._artifacts = artifacts
        self._keeper = Keeper(artifacts, clock, log)
        self._recovery = Recovery(lifecycle, drivers, clock, self._whole, self._folder)

    @property
    def is_leaving(self) -> bool:
        """Whether all jobs are being let go."""
        return self._stop.is_set()

    def carry(self, job_id: str) -> None:
        """Bring a job as far as it goes now: to its end, or back into the line."""
        while not self._stop.is_set():
            try:
                if not self._go_on(self._lifecycle.get(job_id)):
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

    def _go_on(self, job: Workload) -> bool:
        """Do what is due in this state; False when there is nothing."""
        acts = {
            JobState.RUNNING: self._watch,
            JobState.FINALIZING: self._save,
            JobState.RECOVERING: self._recovery.go_on,
        }
        act = self._set_up if job.state.is_setup else acts.get(job.state)
        if act is not None:
            act(job)
        return act is not None

    # setup

    def _set_up(self, job: Workload) -> None:
        """Go through the setup that is left."""
        driver, first = self._drivers[job.service], SETUP.index(job.state)
        for state in self._steps(job, driver):
            if SETUP.index(state) < first:
                continue
            job = self._lifecycle.get(job.id)
            if job.terminating_since is not None and not self._is_running(job):
                self._end_unstarted(job)
                return
            if job.preempted and not self._is_running(job):
                self._try_later(job, SetupFailed("the host was preempted", "capacity", replace=True))
                return
            if not self._step(state, job, driver):
                return
        self._lifecycle.move(job.id, JobState.RUNNING, Mover.DRIVER)
        crash.point("drive.after-running")

    def _steps(self, job: Workload, driver: Driver) -> list[JobState]:
        own = driver.steps(job)
        return [
            state for state in SETUP if state in own or (state is JobState.SYNCING and self._artifacts.restores(job))
        ]

    def _step(self, state: JobState, job: Workload, driver: Driver) -> bool:
        """Do one step and keep its facts; False when it ended the setup."""
        if job.state is not state:
            job = self._lifecycle.move(job.id, state, Mover.DRIVER)
        folder = self._folder(job)
        try:
            if state is JobState.SYNCING and self._artifacts.restores(job):
                facts = self._artifacts.restore(self._whole(job), folder, self._stop)
            else:
                facts = driver.step(state, self._whole(job), folder)
        except SetupInvalid as error:
            self._lifecycle.move(job.id, JobState.INVALID, Mover.DRIVER, error.message, reason="invalid")
            return False
        except SetupFailed as error:
            self._try_later(job, error)
            return False
        except (AjError, OSError) as error:
            if not self._stop.is_set():  # else it was cut off by our leaving, and the next daemon does it again
                self._try_later(job, SetupFailed(str(error)))
            return False
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            self._lifecycle.move(job.id, JobState.FAILED, Mover.DRIVER, words, reason="internal-error")
            raise
        self._keep(job, facts)
        crash.point(f"drive.after-{state}")
        return not self._stop.is_set()

    def _keep(self, job: Workload, facts: Mapping[str, Json]) -> None:
        found = dict(facts)
        notes = found.pop("notes", ())
        words = tuple(str(note) for note in notes) if isinstance(notes, list | tuple) else ()
        new = tuple(note for note in words if note not in job.notes)
        if found or new:
            self._lifecycle.note(job.id, facts={**job.facts, **found}, notes=job.notes + new)

    def _try_later(self, job: Workload, error: SetupFailed) -> None:
        """Put a job whose setup failed back into the line, or give it up after the last try."""
        now = self._clock.now()
        later = scheduler.retry(job, cause=error.cause, message=error.message, now=now)
        if later is None:
            words = f"setup failed {job.setup_attempt} times, the last time: {error.message}"
            self._lifecycle.move(job.id, JobState.FAILED, Mover.DRIVER, words, reason="setup-attempts-exhausted")
            return
        needs_another = job.state in HOST_STEPS if error.replace is None else error.replace
        hosts = without_host(job, rfc3339(now)) if needs_another else job.hosts
        changes = {"retry": later, "hosts": hosts, "preempted": False, "can_restart": False}
        self._lifecycle.move(job.id, JobState.RETRYING, Mover.DRIVER, error.message, **changes)
        back_in_line(self._lifecycle, job.id)

    def _is_running(self, job: Workload) -> bool:
        """Whether a start happened already, seen from a record that a crash kept behind."""
        if job.state is not JobState.STARTING:
            return False
        return self._look(job).fate is not Fate.LOST

    def _look(self, job: Workload) -> Observation:
        return self._drivers[job.service].observe(job, self._folder(job))

    def _end_unstarted(self, job: Workload) -> None:
        if job.state is JobState.STARTING:
            # a start that an earlier daemon asked for may still be on its way: it finds this and goes away
            self._drivers[job.service].terminate(job, self._folder(job), 0)
        reason = job.reason or "terminated"
        self._lifecycle.move(job.id, JobState.TERMINATED, Mover.USER, "terminated before it ran", reason=reason)

    # running

    def _watch(self, job: Workload) -> None:
        driver, folder = self._drivers[job.service], self._folder(job)
        if job.preempted and isinstance(driver, Rehearses):
            driver.preempt(job, folder)  # the daemon that noted it may not have come to it
        elif job.terminating_since is not None:
            driver.terminate(job, folder, GRACE_S if job.grace_s is None else job.grace_s)
        elif job.recover_for is not None:
            driver.terminate(job, folder, GRACE_S)
        with self._keeper.beside(job, folder):
            seen = driver.wait(job, folder, self._stop)
        if seen.fate is Fate.RUNNING:
            return  # the daemon is leaving
        crash.point("finish.before-outcome")
        self._has_ended(self._lifecycle.get(job.id), seen)
        crash.point("finish.after-outcome")

    def _has_ended(self, job: Workload, seen: Observation) -> None:
        """Go where the end of the processes leads: to another start, to what is to be saved, or to the outcome."""
        is_lost = seen.fate is Fate.LOST
        if job.terminating_since is None and job.recover_for is not None:
            self._recover(job, job.recover_for)
            return
        if job.terminating_since is None and is_lost and job.spot:
            why = "the host was preempted" if job.preempted else seen.message
            self._lifecycle.move(job.id, JobState.RECOVERING, Mover.MONITOR, why)
            return
        words = None if is_lost and job.terminating_since is not None else seen.message
        end = _with_end(job, seen)
        ending = {"exit_code": end.exit_code, "oom_killed": end.oom_killed, "reason": end.reason}
        if self._artifacts.saves(job):
            self._lifecycle.move(job.id, JobState.FINALIZING, Mover.DRIVER, words, **ending)
        else:
            at = {"completed_at": rfc3339(seen.ended_at)} if seen.ended_at is not None else {}
            self._finish(end, words, {**ending, **at})  # nobody of us may have been there

    def _save(self, job: Workload) -> None:
        """Save what is left to save, then end the job as its processes ended: they do not run once more."""
        error: str | None = LOST_LATE
        if not _is_without_host(job):
            error = self._keeper.last(job, self._folder(job), self._limit(job), self._stop)
        if self._stop.is_set():
            return  # the next daemon goes on with it
        crash.point("save.after-last")
        job = self._lifecycle.get(job.id)
        self._finish(job, job.message, {"data_error": LOST_LATE if error and _is_without_host(job) else error})

    def _limit(self, job: Workload) -> Callable[[], float]:
        """Return what tells how many seconds the last upload still has; less once somebody ends the job."""
        begun = self._clock.monotonic()
        was_ending = job.terminating_since is not None

        def left_s() -> float:
            now = self._lifecycle.get(job.id)
            if _is_without_host(now):
                return 0.0
            spent_s = self._clock.monotonic() - begun
            if now.terminating_since is None:
                return LAST_S - spent_s
            asked_s = spent_s if was_ending else self._clock.now() - from_rfc3339(now.terminating_since)
            return TERMINATED_S - asked_s

        return left_s

    def _finish(self, job: Workload, message: str | None, changes: Mapping[str, object]) -> None:
        """Say how the job ended. Its record has the exit code and what else is known of the end."""
        found = dict(changes)
        if job.terminating_since is not None:
            target, by = JobState.TERMINATED, Mover.USER
            found["reason"] = job.reason or "terminated"
        elif job.reason == HOST_LOST:
            target, by = JobState.FAILED, Mover.DRIVER
        elif found.get("data_error") and self._artifacts.requires(job):
            target, by = JobState.FAILED, Mover.DRIVER
            found["reason"], message = NOT_SAVED, f"what it wrote was not saved: {found['data_error']}"
        else:
            target, by = JobState.COMPLETED if job.exit_code == 0 else JobState.ERRORED, Mover.DRIVER
        self._lifecycle.move(job.id, target, by, message, **found)

    def _recover(self, job: Workload, why: str) -> None:
        """Put a job whose processes were ended back into the line; what it wrote so far stays."""
        if self._artifacts.saves(job):
            begun = self._clock.monotonic()
            left_s = lambda: TERMINATED_S - (self._clock.monotonic() - begun)  # noqa: E731 (it is one thought)
            self._keeper.last(job, self._folder(job), left_s, self._stop)
        self._lifecycle.move(job.id, JobState.RECOVERING, Mover.MONITOR, why)
        self._lifecycle.move(job.id, JobState.QUEUED, Mover.MONITOR, why)

    def _folder(self, job: Workload) -> Path:
        return self._layout.job(job.id)

    def _whole(self, job: Workload) -> Workload:
        """The job with what was asked for. Raises SetupInvalid when that is lost, AjError."""
        try:
            return replace(job, spec=jobs.spec(self._layout, job.id))
        except AjError as error:
            if error.code == "damaged-record":
                raise SetupInvalid(error.message) from error
            raise


def _reason(job: Workload, seen: Observation) -> str | None:
    """Return the word for an end that an exit code alone does not explain."""
    if job.terminating_since is not None:
        return job.reason
    if seen.fate is Fate.LOST:
        return HOST_LOST
    if seen.exit_code == 0:
        return None
    return "out-of-memory" if seen.oom_killed else "setup-failed" if seen.in_setup else None


def _with_end(job: Workload, seen: Observation) -> Workload:
    """Return the record with what was seen of the end of its processes."""
    return replace(job, exit_code=seen.exit_code, oom_killed=seen.oom_killed, reason=_reason(job, seen))


def _is_without_host(job: Workload) -> bool:
    """Tell whether the host was taken away for good."""
    return job.preempted and not job.can_restart


def back_in_line(lifecycle: Lifecycle, job_id: str) -> None:
    """Let a job wait for its next try; its due time stands in its record."""
    job = lifecycle.get(job_id)
    lifecycle.move(job_id, JobState.QUEUED, Mover.SCHEDULER, job.message, retry=job.retry)


def is_active(job: Workload, drivers: Mapping[str, Driver]) -> bool:
    """Tell whether a job needs a thread that carries it."""
    return job.service in drivers and scheduler.holds(job)
