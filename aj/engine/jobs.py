"""The jobs that our own engine drives: admitted, started when there is room, watched, ended, cleaned up.

One thread decides who starts; each started job has a thread that carries it; one more cleans up. None
of them looks again and again: they wait for a change, or for a moment that is due. Everything is on
disk before it is told, so a daemon that was killed is replaced by one that adopts what it finds.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from aj.backend.protocol import Driver, Rehearses
from aj.base import crash, redact
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.engine import scheduler
from aj.engine.artifacts import Artifacts, NoArtifacts
from aj.engine.drive import GRACE_S, Drive, Log, is_active
from aj.engine.janitor import Janitor, Keep
from aj.engine.lifecycle import Lifecycle
from aj.engine.spend import Spend
from aj.engine.starter import MAX_RUNTIME, Starter, may_be_ended, place_of
from aj.model import image as images
from aj.model.code import CodeRef
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.state import JobState, Mover
from aj.model.ticket import Mode
from aj.model.workload import Workload
from aj.store import archives, jobs
from aj.store.layout import Layout
from aj.wire.messages import Done, Exec, ExecPlan, JobAnswer, JobList

PLACE = "jobs"  # of the handles `local://jobs/ID`
LONGEST_SLEEP_S = 3600.0  # nothing is due for longer than that without a look
LEAVE_S = 2.0  # for all threads together to notice that the daemon is leaving
UPGRADE = "stopped for the upgrade of the daemon"
KEEP = Keep()
NOTHING = NoArtifacts()

Resolve = Callable[[str], str]  # an image to the digest of what it is just now
Publish = Callable[[str, str, Mapping[str, Json]], None]


class Targets(Protocol):
    """What jobs that were sent to a deployment need, which no driver has."""

    def terminate(self, job_id: str, grace_s: float | None) -> None:
        """End one, as far as it can be done from here. Raises NotFound, AjError."""

    def check_resubmission(self, name: str) -> None:
        """Raise NotFound, Refused when a job that runs again would find no such deployment."""


class Jobs:
    """All driven jobs of one daemon. Safe to use from any thread.

    `open_project` may be set to what makes this daemon the owner of a project, and lets it `adopt` its
    jobs; it raises Refused when another daemon has it. It is called before a job is changed, and when
    one is asked for that has not ended.
    """

    open_project: Callable[[str], object] | None = None
    targets: Targets | None = None

    def __init__(
        self,
        layout: Layout,
        drivers: Mapping[str, Driver],
        clock: Clock,
        publish: Publish,
        *,
        keep: Keep = KEEP,
        log: Log = lambda _: None,
        artifacts: Artifacts = NOTHING,
        resolve: Resolve = lambda image: _no_images(image),
    ) -> None:
        self._layout = layout
        self._drivers = drivers
        self._clock = clock
        self._publish = publish
        self._log = log
        self._resolve = resolve
        self._artifacts = artifacts
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._wake_janitor = threading.Event()
        self._guard = threading.RLock()
        self._projects: set[str] = set()
        self._warnings: list[str] = []
        self._threads: list[threading.Thread] = []
        self._works = False
        self._lifecycle = Lifecycle(layout, clock, self._changed)
        self.spend = Spend(layout, clock, self._lifecycle.living, self._wake.set, frozenset(drivers))
        self._lifecycle.books = self.spend.account
        carrier = Drive(self._lifecycle, layout, drivers, clock, self._stop, log, artifacts)
        self._starter = Starter(
            self._lifecycle, layout, drivers, carrier, clock, self._begin, log, self._end_overdue, self.spend
        )
        self._janitor = Janitor(
            self._lifecycle, layout, drivers, clock, keep, self._was_cleaned, artifacts, self._wake.set
        )

    @property
    def lifecycle(self) -> Lifecycle:
        """The one door through which a job changes its state."""
        return self._lifecycle

    def tidy(self) -> None:
        """Look for jobs that can be cleaned up now."""
        self._wake_janitor.set()

    # coming in

    def settle(self, spec: JobSpec) -> JobSpec:
        """Return the request with what must be known before it is admitted: what its image's tag means just now.

        Nothing is changed anywhere. Raises UserError on bad options, Refused when it is larger than the whole
        place, ConfigError when the price table is wrong, NotFound or AuthError when the registry does not give the
        image, Unavailable when it cannot be asked.
        """
        driver = self._driver(spec.service)
        if self.find(spec.id) is not None:
            return spec  # it is there already: nothing is looked up for it again
        scheduler.check_fits(driver.needs(spec), place_of(driver))
        self._artifacts.check(spec)
        self.spend.prices()
        if spec.image is None or images.is_host(spec.image) or spec.image_digest is not None:
            return spec
        return replace(spec, image_digest=self._resolve(spec.image))

    def admit(
        self, spec: JobSpec, code: CodeRef | None, *, ticket: str, project_key: str, accepted_at: str, mode: Mode
    ) -> Handle:
        """Make a job durable, so that it will run. The same job again gives the same handle.

        Raises UserError on bad options, Refused when it is larger than the whole place or its id is
        taken, AjError when the disk refuses; then there is no such job.
        """
        driver = self._driver(spec.service)
        handle = Handle(spec.service, PLACE, spec.id)
        known = self.find(spec.id)
        if known is not None:
            if known.ticket != ticket:
                raise Refused(f"there is a job {spec.id} already", code="job-exists")
            return handle
        needs = driver.needs(spec)
        scheduler.check_fits(needs, place_of(driver))
        at = from_rfc3339(accepted_at)
        self.adopt(project_key)
        job = Workload(
            id=spec.id,
            name=spec.name,
            service=spec.service,
            template=spec.template,
            project=spec.project,
            project_key=project_key,
            ticket=ticket,
            state=JobState.QUEUED,
            created_at=rfc3339(at),
            submitted_at=rfc3339(at),
            needs=needs,
            code=code,
            command=redact.text(shlex.join(spec.argv)),
            image=spec.image,
            nodes=spec.shape.nodes,
            processes_per_node=spec.shape.processes_per_node,
            deadline_at=None if spec.start_timeout_s is None else at + spec.start_timeout_s,
            image_digest=spec.image_digest,
            spot=spec.spot,
            max_runtime_s=spec.max_runtime_s,
            max_cost=spec.max_cost,
            workdir=str(jobs.work_folder(self._layout.job(spec.id), 0)),
            agent=spec.agent,
            session=spec.session,
            session_title=spec.session_title,
            spec=spec,
        )
        self._admit(self._artifacts.admit(job))
        return handle

    def _admit(self, job: Workload) -> None:
        """Make the record, or leave nothing of what was made for the job before."""
        try:
            self._lifecycle.admit(job)
        except (AjError, OSError):
            with contextlib.suppress(AjError, OSError):  # the first error is the one to tell
                if not jobs.exists(self._layout, job.id):
                    self._artifacts.remove(job, self._layout.job(job.id))
            raise

    def find(self, job_id: str) -> Workload | None:
        """Return a job; None when there is definitely none. Raises AjError when its record is damaged."""
        try:
            return self._lifecycle.get(job_id)
        except NotFound:
            return None

    def adopt(self, project_key: str) -> None:
        """Take up the unfinished jobs of a project that this daemon owns now; again is fine.

        Raises AjError, OSError when the jobs cannot be read; the project is then not taken up.
        """
        with self._starter.still():  # nothing new starts before all that runs is known
            with self._guard:
                if project_key in self._projects:
                    return
            for job in jobs.opened(self._layout, project_key, self._warn):
                if not job.is_over or job.resubmit_when_clean:
                    self._adopt(job)
            with self._guard:
                self._projects.add(project_key)
        self._begin_work()
        self._wake.set()
        self._wake_janitor.set()

    def _adopt(self, job: Workload) -> None:
        """Take up one job where the last daemon left it."""
        try:
            self._lifecycle.adopt(job)
            if job.is_over:
                self._was_cleaned(job)
            elif job.state in (JobState.QUEUED, JobState.RETRYING) and job.terminating_since is not None:
                self._terminate_waiting(job.id)
            elif job.state is JobState.RETRYING:
                self._lifecycle.move(job.id, JobState.QUEUED, Mover.SCHEDULER, job.message)
            elif is_active(job, self._drivers):
                self._starter.carry(job.id)
        except AjError as error:
            self._warn(f"job {job.id} could not be taken up: {error}")

    def _begin_work(self) -> None:
        """Begin to schedule and to clean, once there is a project to do it for."""
        with self._guard:
            if self._works or self._stop.is_set():
                return
            self._works = True
        for work in (self._schedule, self._clean):
            self._begin(work)

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="jobs", daemon=True)
        with self._guard:
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    # asking

    def list(self, project_key: str | None, states: Sequence[JobState], limit: int) -> JobList:
        """Return the newest jobs of one project or of all, in these states or in any."""
        told: list[str] = []
        living = {job.id: job for job in self._lifecycle.living()}
        found = [
            living.get(job.id, job)
            for job in jobs.listing(self._layout, told.append)
            if project_key is None or job.project_key == project_key
        ]
        chosen = [job for job in found if not states or job.state in states]
        return JobList(tuple(chosen[:limit]), truncated=len(chosen) > limit, warnings=tuple(told))

    def show(self, job_id: str) -> JobAnswer:
        """Return a job with its history. Raises NotFound."""
        return self._answer(self._seen(job_id))

    def wait(self, job_id: str, after_event: int, timeout_s: float) -> JobAnswer:
        """Wait for an event after that number, for the end of the clean-up, or for the time to be over.

        Raises NotFound.
        """
        self._seen(job_id)
        self._lifecycle.wait(lambda: self._stop.is_set() or self._has_news(job_id, after_event), timeout_s)
        return self.show(job_id)

    def _has_news(self, job_id: str, after_event: int) -> bool:
        job = self._lifecycle.held(job_id)
        if job is None:
            return True  # it is over, deleted, or another daemon's
        return job.is_over or (job.last_event is not None and job.last_event.number > after_event)

    def _answer(self, job: Workload) -> JobAnswer:
        told: list[str] = list(self._warnings)
        events = jobs.events(self._layout, job, told.append)
        ahead = None
        if job.state is JobState.QUEUED:
            line = scheduler.in_line(one for one in self._lifecycle.living() if _shares_line(one, job))
            ahead = next((at for at, one in enumerate(line) if one.id == job.id), None)
        return JobAnswer(
            replace(job, spec=None),
            events=events,
            events_total=len(events),
            jobs_ahead=ahead,
            logs=str(self._layout.job(job.id) / "logs"),
            warnings=tuple(told),
            checkpoints=self._artifacts.checkpoints(job, self._layout.job(job.id)),
        )

    def running(self) -> int:
        """How many jobs hold a place, from the begin of their setup to the end of their processes.

        Jobs of deployments are not counted: their replicas are.
        """
        return sum(scheduler.holds(job) for job in self._lifecycle.living() if job.targeted is None)

    def queued(self) -> int:
        """How many jobs wait for a place."""
        return sum(job.state in (JobState.QUEUED, JobState.RETRYING) for job in self._lifecycle.living())

    def unfinished_projects(self) -> set[str]:
        """Return the projects on disk with a job that needs this daemon: not ended, not clean, or promised."""
        return {
            job.project_key
            for job in jobs.listing(self._layout, lambda _: None)
            if not job.is_over or job.resubmit_when_clean
        }

    def digests(self) -> set[str]:
        """Return the archives that a job may still need: of every job that is on record."""
        return {job.code.digest for job in jobs.listing(self._layout, lambda _: None) if job.code is not None}

    # changing

    def terminate(self, job_id: str, grace_s: float | None) -> JobAnswer:
        """Ask for the end, durably. One that waits ends at once; one that has ended stays as it is.

        A running job is told also when the disk refuses to note it: it may be what fills the disk.
        Raises NotFound, Refused when another daemon drives it, AjError when one that waits cannot be
        ended because the disk refuses.
        """
        job = self._ours(job_id)
        if job.state.is_final:
            return self._answer(job)
        if job.targeted is not None and self.targets is not None:
            self.targets.terminate(job_id, grace_s)
            return self.show(job_id)
        grace = GRACE_S if grace_s is None else grace_s
        with self._lifecycle.alone(job_id):
            if self._lifecycle.get(job_id).state.is_final:
                return self.show(job_id)
            job = self._note_end(job_id, grace)
            if job.state in (JobState.QUEUED, JobState.RETRYING):
                self._terminate_waiting(job_id)
        if job.state in (JobState.STARTING, JobState.RUNNING, JobState.FINALIZING):
            self._drivers[job.service].terminate(job, self._layout.job(job_id), grace)
        self._wake.set()
        return self.show(job_id)

    def _note_end(self, job_id: str, grace_s: float) -> Workload:
        job = self._lifecycle.get(job_id)
        wish = {"terminating_since": job.terminating_since or rfc3339(self._clock.now()), "grace_s": grace_s}
        try:
            return self._lifecycle.note(job_id, **wish)
        except AjError as error:
            if job.state in (JobState.QUEUED, JobState.RETRYING):
                raise
            self._log(f"job {job_id}: that it shall end is not written down: {error}")
            return self._lifecycle.remember(job_id, **wish)

    def _terminate_waiting(self, job_id: str) -> None:
        reason = self._lifecycle.get(job_id).reason or "terminated"
        self._lifecycle.move(job_id, JobState.TERMINATED, Mover.USER, "terminated before it ran", reason=reason)

    def preempt(self, job_id: str, can_restart: bool) -> JobAnswer:
        """Play the loss of a spot job's host; with `can_restart` that host comes back and is used once more.

        Raises NotFound, Refused for a job that has no host, is not on spot, or whose place cannot play it.
        """
        job = self._ours(job_id)
        driver = self._driver(job.service)
        if not job.spot:
            hint = "submit it with `aj job --spot`, or from a template with `target: {spot: true}`"
            raise Refused(f"job {job_id} is not on spot: nobody takes its host away", code="not-spot", hint=hint)
        if not isinstance(driver, Rehearses):
            raise Refused(f"`{job.service}` cannot play the loss of a host", code="not-rehearsed")
        with self._lifecycle.alone(job_id):
            job = self._lifecycle.get(job_id)
            if not scheduler.holds(job):
                again = f"`aj resubmit {job_id}` runs it again" if job.state.is_final else f"`aj job why {job_id}`"
                raise Refused(f"job {job_id} has no host: {job.state}", code="no-host", hint=again)
            job = self._lifecycle.note(job_id, preempted=True, can_restart=can_restart)
        crash.point("preempt.after-note")
        if job.state in (JobState.STARTING, JobState.RUNNING):
            driver.preempt(job, self._layout.job(job_id))
        return self.show(job_id)

    def _end_overdue(self, job: Workload, reason: str) -> None:
        """End a job that has run as long or has cost as much as it may."""
        try:
            with self._lifecycle.alone(job.id):
                now = self._lifecycle.get(job.id)
                if not may_be_ended(now) or (reason == MAX_RUNTIME and now.state is not JobState.RUNNING):
                    return
                self._lifecycle.note(job.id, reason=reason)
                self.terminate(job.id, None)
        except AjError as error:
            self._log(f"job {job.id} is not ended: {error}")  # looked at again in the next round

    def _check_code(self, code: CodeRef | None) -> None:
        """Raise Refused when submitted code is no longer kept."""
        from aj.pack import archive  # it is imported with the first code that there is

        if code is not None and archive.find(self._layout.code, code) is None:
            raise archives.gone(code.digest)

    def resubmit(
        self, job_id: str, when_clean: bool, start_timeout_s: float | None, refresh_image: bool = False
    ) -> JobAnswer:
        """Run a final, cleaned job again: same id, same code, next revision.

        With `when_clean` a job that is not cleaned up yet runs again as soon as it is, also after a
        restart. The image stays the one that was found at admission, unless `refresh_image` asks what its
        tag means now. Raises NotFound, and Refused when it has not ended, is not clean, or its code is gone;
        as `settle` for an image.
        """
        job = self._ours(job_id)
        digest = self._refreshed(job) if refresh_image else None
        self._check_code(job.code)
        if job.targeted is not None and self.targets is not None:
            self.targets.check_resubmission(job.targeted.deployment)
        with self._lifecycle.alone(job_id):
            job = self._lifecycle.get(job_id)
            if not job.state.is_final:
                hint = f"`aj terminate {job_id}` ends it"
                raise Refused(f"job {job_id} has not ended: {job.state}", code="not-ended", hint=hint)
            if when_clean and job.cleaned_at is None:
                promise = {"resubmit_timeout_s": start_timeout_s, "resubmit_image_digest": digest}
                self._lifecycle.note(job_id, resubmit_when_clean=True, **promise)
            else:
                self._again(job_id, start_timeout_s, digest)
        return self.show(job_id)

    def _refreshed(self, job: Workload) -> str:
        if job.image is None or images.is_host(job.image):
            raise UserError(f"job {job.id} has no image to look up again", hint="leave out `--refresh-image`")
        return self._resolve(job.image)

    def _again(self, job_id: str, start_timeout_s: float | None, digest: str | None) -> None:
        changes: dict[str, object] = {"image_digest": digest} if digest is not None else {}
        if start_timeout_s is not None:
            changes["deadline_at"] = self._clock.now() + start_timeout_s
        self._lifecycle.move(job_id, JobState.QUEUED, Mover.USER, None, **changes)
        self._wake.set()

    def hold(self, lease_s: float, stop: bool) -> int:
        """Start no job for so long; return how many still run. Those wait in the line, and so do new ones.

        With `stop` the running ones are ended, durably marked to run again: they go back into the line.
        """
        self._starter.hold(lease_s)
        self._wake.set()
        if stop:
            for job in self._lifecycle.living():
                if scheduler.holds(job) and job.service in self._drivers:
                    self._stop_to_recover(job.id)
        return self.running()

    def _stop_to_recover(self, job_id: str) -> None:
        try:
            with self._lifecycle.alone(job_id):
                job = self._lifecycle.get(job_id)
                if not scheduler.holds(job) or job.terminating_since is not None or job.recover_for is not None:
                    return
                job = self._lifecycle.note(job_id, recover_for=UPGRADE)
            if job.state is JobState.RUNNING:  # one in setup is ended when it has come so far
                self._drivers[job.service].terminate(job, self._layout.job(job_id), GRACE_S)
        except NotFound:
            return  # deleted meanwhile
        except AjError as error:
            self._log(f"job {job_id} is not stopped: {error}")  # asked again with the next hold

    def exec_plan(self, job_id: str, asked: Exec) -> ExecPlan:
        """Say how to run a command inside a running job. Raises NotFound, Refused, UserError."""
        if not asked.argv:
            raise UserError("no command given", hint=f"`aj exec {job_id} COMMAND`")
        job = self._seen(job_id)
        if job.targeted is not None:
            raise jobs.is_inside(job, "no command can run beside it")
        whole = replace(job, spec=jobs.spec(self._layout, job_id))
        return self._driver(job.service).exec_plan(whole, self._layout.job(job_id), asked)

    def delete(self, job_id: str) -> Done:
        """Remove a final job with its logs and files. Raises NotFound, Refused while it runs, AjError."""
        job = self._ours(job_id)
        if not job.state.is_final:
            hint = f"`aj terminate {job_id}` ends it"
            raise Refused(f"job {job_id} has not ended: {job.state}", code="not-ended", hint=hint)
        if job.holds_slot:
            raise Refused(f"job {job_id} is not cleaned up yet: {job.cleanup_error}", code="not-cleaned")
        if job.cleaned_at is None:
            self._janitor.clean(job_id)
        with self._lifecycle.alone(job_id):
            if not self._lifecycle.get(job_id).is_over:
                raise Refused(f"job {job_id} was submitted again", code="not-ended")
            self._lifecycle.remove(job_id)
        return Done("deleted", detail=job_id)

    def stop(self) -> None:
        """Let go of all jobs; they go on under their supervisors."""
        self._stop.set()
        self._wake.set()
        self._wake_janitor.set()
        self._lifecycle.wake()
        leave_at = self._clock.monotonic() + LEAVE_S
        with self._guard:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, leave_at - self._clock.monotonic()))

    def _schedule(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            next_at = self._starter.round()
            now = self._clock.now()
            sleep_s = LONGEST_SLEEP_S if next_at is None else max(0.0, min(next_at - now, LONGEST_SLEEP_S))
            self._clock.wait(self._wake, sleep_s)

    # afterwards

    def _clean(self) -> None:
        while not self._stop.is_set():
            self._wake_janitor.clear()
            with self._guard:
                projects = frozenset(self._projects)
            next_at = self._janitor.round(projects)
            self._clock.wait(self._wake_janitor, max(0.0, next_at - self._clock.now()))

    def _was_cleaned(self, job: Workload) -> None:
        """Keep a promise to run again, else forget a job that is over."""
        with self._lifecycle.alone(job.id):
            if not self._lifecycle.get(job.id).is_over:
                return
            if job.resubmit_when_clean:
                self._again_if_allowed(job)
            else:
                self._lifecycle.forget(job.id)

    def _again_if_allowed(self, job: Workload) -> None:
        try:
            self._again(job.id, job.resubmit_timeout_s, job.resubmit_image_digest)
        except AjError as error:
            self._log(f"job {job.id} does not run again: {error}")

    def _changed(self, job: Workload) -> None:
        self._wake.set()
        if job.state.is_final or scheduler.awaits_release(job):
            self._wake_janitor.set()
        payload: dict[str, Json] = {
            "id": job.id,
            "name": job.name,
            "state": job.state.value,
            "message": job.message,
            "event": job.last_event.number if job.last_event else 0,
        }
        self._publish("job", job.project_key, payload)

    def _ours(self, job_id: str) -> Workload:
        """Return a job that may be changed here. Raises NotFound, Refused when another daemon has its project."""
        job = self._lifecycle.get(job_id)
        with self._guard:
            is_ours = job.project_key in self._projects
        if not is_ours:
            if self.open_project is not None:
                self.open_project(job.project_key)
            self.adopt(job.project_key)
        return self._lifecycle.get(job_id)

    def _seen(self, job_id: str) -> Workload:
        """Return a job as it stands, taken up first if nobody drives it. Raises NotFound."""
        job = self._lifecycle.get(job_id)
        if job.is_over or self.open_project is None:
            return job
        try:
            return self._ours(job_id)
        except Refused:
            return job  # another daemon drives it, and its record tells how far it is

    def _driver(self, service: str) -> Driver:
        driver = self._drivers.get(service)
        if driver is None:
            raise Refused(f"`{service}` jobs are not driven by this daemon", code="not-driven")
        return driver

    def _warn(self, words: str) -> None:
        self._log(words)
        with self._guard:
            if words not in self._warnings:
                self._warnings.append(words)


def _shares_line(one: Workload, job: Workload) -> bool:
    """Whether two jobs wait in one line: that of a service, or that of a deployment."""
    if one.targeted is None or job.targeted is None:
        return one.service == job.service
    return one.targeted.deployment == job.targeted.deployment


def _no_images(image: str) -> str:
    raise Refused(f"the image {image} cannot be looked up by this engine", code="no-images")
