"""What happens to a job after its end: teardown, until it succeeds, and the removal of what is old.

The outcome is known before. A teardown that fails shows as the record's `cleanup_error` and is tried
again, at growing distances; only then may the job run again. Old outputs go first, old records later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from aj.backend.protocol import Driver
from aj.base import crash, units
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError, NotFound
from aj.base.noun import dataclass
from aj.engine import scheduler
from aj.engine.artifacts import Artifacts
from aj.engine.lifecycle import Lifecycle, without_host
from aj.model.workload import Workload
from aj.store import joblogs, jobs
from aj.store.layout import Layout

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 600.0  # between tries of one teardown
ROUND_S = 3600.0  # how often old things are looked for
DAY_S = 86400.0


@dataclass(frozen=True)
class Keep:
    """How long things are kept after the end of a job, and how much of each log."""

    work_s: float = 30 * DAY_S
    records_s: float = 90 * DAY_S
    log_bytes: int = 64 << 20


class Janitor:
    """Cleans up after jobs. One round after the other, from one thread."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        layout: Layout,
        drivers: Mapping[str, Driver],
        clock: Clock,
        keep: Keep,
        cleaned: Callable[[Workload], None],
        artifacts: Artifacts,
        look_again: Callable[[], None],
    ) -> None:
        self._lifecycle = lifecycle
        self._layout = layout
        self._drivers = drivers
        self._clock = clock
        self._keep = keep
        self._cleaned = cleaned
        self._artifacts = artifacts
        self._look_again = look_again
        self._due: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._next_removal = 0.0

    def round(self, projects: Collection[str]) -> float:
        """Do what is due now; return the moment of the next round, unless something ends before."""
        now = self._clock.now()
        for job in self._lifecycle.living():
            if self._due.get(job.id, 0) > now:
                continue
            if job.state.is_final and job.cleaned_at is None and not job.holds_slot:
                self._try(job, self.clean)
            elif scheduler.awaits_release(job):
                self._try(job, self._release)
        if now >= self._next_removal:
            self._next_removal = now + ROUND_S
            self.remove_old(projects)
        return min([self._next_removal, *self._due.values()])

    def _try(self, job: Workload, act: Callable[[str], object]) -> None:
        try:
            act(job.id)
        except NotFound:
            return  # deleted meanwhile
        except (AjError, OSError) as error:
            self._put_off(job, str(error))

    def clean(self, job_id: str) -> Workload:
        """Tear one final job down and say so in its record. Raises AjError, OSError when it does not work."""
        with self._lifecycle.alone(job_id):
            job = self._lifecycle.get(job_id)
            if not job.state.is_final or job.cleaned_at is not None or job.holds_slot:
                return job
            folder = self._layout.job(job_id)
            driver = self._drivers.get(job.service)
            if driver is not None:
                driver.teardown(job, folder)
            self._artifacts.remove(job, folder)
            dropped = tuple(joblogs.trim(folder, self._keep.log_bytes))
            crash.point("finish.after-cleanup")
            now = rfc3339(self._clock.now())
            changes = {"hosts": without_host(job, now, released=True), "notes": job.notes + dropped}
            job = self._lifecycle.note(job_id, cleaned_at=now, cleanup_error=None, **changes)
        self._is_done(job_id)
        self._cleaned(job)
        self._look_again()  # its host is not paid for any more
        return job

    def _release(self, job_id: str) -> None:
        """Give back a host that its job has no more use for, so that it may have another. Raises AjError, OSError."""
        with self._lifecycle.alone(job_id):
            job = self._lifecycle.get(job_id)
            driver = self._drivers.get(job.service)
            if driver is None or not scheduler.awaits_release(job):
                return
            driver.release(job, self._layout.job(job_id))
            crash.point("recover.after-release")
            hosts = without_host(job, rfc3339(self._clock.now()), released=True)
            self._lifecycle.note(job_id, hosts=hosts, cleanup_error=None)
        self._is_done(job_id)
        self._look_again()

    def _is_done(self, job_id: str) -> None:
        self._due.pop(job_id, None)
        self._pauses.pop(job_id, None)

    def _put_off(self, job: Workload, words: str) -> None:
        pause_s = self._pauses.get(job.id, FIRST_PAUSE_S)
        self._pauses[job.id] = min(LONGEST_PAUSE_S, pause_s * 2)
        self._due[job.id] = self._clock.now() + pause_s
        if job.cleanup_error != words:
            try:
                self._lifecycle.note(job.id, cleanup_error=words)
            except AjError:
                return  # the same disk, most likely; the next try writes it
            self._look_again()  # what the job waits for has changed

    def remove_old(self, projects: Collection[str]) -> None:
        """Remove old outputs and old records of jobs that are over, in the projects that are ours."""
        for job in jobs.listing(self._layout, lambda _: None):
            if job.project_key in projects and job.is_over and job.completed_at is not None:
                try:
                    self._remove_if_old(job, self._clock.now() - from_rfc3339(job.completed_at))
                except (AjError, OSError):
                    continue  # tried again in the next round

    def _remove_if_old(self, job: Workload, age_s: float) -> None:
        with self._lifecycle.alone(job.id):
            if not self._lifecycle.get(job.id).is_over:
                return  # it was submitted again just now
            if age_s > self._keep.records_s:
                self._lifecycle.remove(job.id)
            elif age_s > self._keep.work_s and job.workdir is not None:
                jobs.remove_tree(self._layout.job(job.id) / "work")
                note = f"its files were removed {units.duration(age_s)} after the end"
                self._lifecycle.note(job.id, workdir=None, notes=(*job.notes, note))
