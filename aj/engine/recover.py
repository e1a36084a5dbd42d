"""A job that has lost its host: the same host once more if it comes back, else another one.

First the driver is asked for the old host, on which everything is still there; the job is started again
there and runs on. When that host stays lost, the job goes back into the line. It gets another one as soon
as the place has confirmed that the old one is gone, and finds there what was saved before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from aj.backend.protocol import Driver, SetupFailed, SetupInvalid
from aj.base import crash
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError
from aj.base.noun import dataclass
from aj.engine import scheduler
from aj.engine.lifecycle import Lifecycle, without_host
from aj.model.json import Json
from aj.model.state import JobState, Mover
from aj.model.workload import Retry, Workload

RESTARTING = "restarting"  # the fact in which the number of the start on the old host stands
SOON_S = 60.0  # who loses its host so soon after the start may be the cause: it waits, ever longer


@dataclass(frozen=True)
class Recovery:
    """What happens in the state `recovering`. Every step may be cut off and begun again."""

    lifecycle: Lifecycle
    drivers: Mapping[str, Driver]
    clock: Clock
    whole: Callable[[Workload], Workload]
    folder: Callable[[Workload], Path]

    def go_on(self, job: Workload) -> None:
        """Bring the job back to running, or into the line. Raises AjError when the disk refuses."""
        if job.terminating_since is not None:
            self._terminate(job)
        elif self._is_hasty(job):
            self._replace(job, "it ended soon after its start")
        else:
            self._restart(job)

    def _restart(self, job: Workload) -> None:
        """Start the job again on the host that it had."""
        driver, folder = self.drivers[job.service], self.folder(job)
        try:
            driver.revive(self.whole(job), folder)
            job = self._numbered(job)
            crash.point("recover.before-restart")
            facts = driver.step(JobState.STARTING, self.whole(job), folder)
        except SetupInvalid as error:
            self.lifecycle.move(job.id, JobState.FAILED, Mover.MONITOR, error.message, reason="invalid")
            return
        except (SetupFailed, AjError, OSError) as error:
            self._replace(job, str(error))
            return
        crash.point("recover.after-restart")
        self._runs(job, facts)

    def _numbered(self, job: Workload) -> Workload:
        """Give the next start its number, once, before anything is begun."""
        if RESTARTING in job.facts:
            return job
        number = job.attempt + 1
        return self.lifecycle.note(job.id, attempt=number, facts={**job.facts, RESTARTING: number})

    def _runs(self, job: Workload, facts: Mapping[str, Json]) -> None:
        found = {name: value for name, value in {**job.facts, **facts}.items() if name not in (RESTARTING, "notes")}
        words = "restarted in place"
        changes: dict[str, object] = {"facts": found, "preempted": False, "can_restart": False}
        self.lifecycle.move(job.id, JobState.RUNNING, Mover.MONITOR, words, **changes)

    def _replace(self, job: Workload, why: str) -> None:
        """Put the job back into the line, without its host."""
        now = self.clock.now()
        facts = {name: value for name, value in job.facts.items() if name != RESTARTING}
        changes: dict[str, object] = {
            "facts": facts,
            "hosts": without_host(job, rfc3339(now)),
            "retry": self._pause(job, why, now),
            "preempted": False,
            "can_restart": False,
        }
        self.lifecycle.move(job.id, JobState.QUEUED, Mover.MONITOR, f"another host is needed: {why}", **changes)

    def _terminate(self, job: Workload) -> None:
        # a start on the old host may be on its way: it finds this and goes away
        self.drivers[job.service].terminate(job, self.folder(job), 0)
        words = "terminated while its host was lost"
        self.lifecycle.move(job.id, JobState.TERMINATED, Mover.USER, words, reason=job.reason or "terminated")

    def _is_hasty(self, job: Workload) -> bool:
        """Tell whether a host that nobody took away was lost right after the start."""
        if job.preempted or job.started_at is None or RESTARTING in job.facts:
            return False
        lost_at = from_rfc3339(job.last_event.at) if job.last_event else self.clock.now()
        return lost_at - from_rfc3339(job.started_at) < SOON_S

    def _pause(self, job: Workload, why: str, now: float) -> Retry | None:
        return scheduler.pause(job.recoveries, why, now) if self._is_hasty(job) else None
