"""Deployments: made, shown, changed and removed; jobs are sent to them, and their replicas take those.

One daemon looks after all deployments of a user, as one daemon owns a project's queue. Whoever asks
another one is told which it is.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from aj.backend.local.replica import Replicas
from aj.base import redact, text
from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, Refused, UserError
from aj.base.paths import NO_PROJECT, Project
from aj.engine import tokens
from aj.engine.claims import EXPIRED, Claims, held_by, queue_of
from aj.engine.crew import Crew
from aj.engine.drive import Log
from aj.engine.lifecycle import Lifecycle
from aj.engine.spend import Spend
from aj.model.claim import LONGEST_WAIT_S, Bearer, Candidate, ClaimState, Ending, SelectedJob, Targeted
from aj.model.deployment import Deployment, DeploymentStatus, Holding, ReplicaState
from aj.model.state import JobState
from aj.model.workload import Needs, Workload
from aj.store import deployments, jobs, lock
from aj.store.layout import Layout
from aj.store.runtime import Place
from aj.wire.deployment import ClaimAnswer, Create, DeploymentAnswer, DeploymentList, Targeting, Upgrade
from aj.wire.messages import Done, JobAnswer

SERVICE = "deployment"  # of jobs that are sent to one
# A replica holds a connection for work and one for each job's cancellation; the daemon has 64 for everybody.
MOST_LINES = 48
OWNERSHIP = "_deployments"


class Jobs(Protocol):
    """The jobs of this daemon, as far as deployments need them."""

    @property
    def lifecycle(self) -> Lifecycle:
        """The one door through which a job changes its state."""

    @property
    def spend(self) -> Spend:
        """What jobs cost, and what may start because of that."""

    def adopt(self, project_key: str) -> None:
        """Take up the unfinished jobs of a project that this daemon owns."""

    def show(self, job_id: str) -> JobAnswer:
        """Return a job with its history. Raises NotFound."""

    def tidy(self) -> None:
        """Look for jobs that can be cleaned up now."""


class Deployments:
    """All deployments of one daemon. Safe to use from any thread. Every error is one of `aj.base.errors`."""

    def __init__(
        self,
        layout: Layout,
        clock: Clock,
        jobs: Jobs,
        driver: Replicas,
        *,
        log: Log = lambda _: None,
        open_project: Callable[[Project | None], object] = lambda _: None,
    ) -> None:
        self._layout = layout
        self._clock = clock
        self._jobs = jobs
        self._lifecycle = jobs.lifecycle
        self._open_project = open_project
        self._log = log
        self._crew = Crew(layout, clock, driver, log)
        self._claims = Claims(
            jobs.lifecycle,
            layout,
            clock,
            self._crew,
            released=self._slot_is_free,
            log=log,
            deciding=jobs.spend.deciding,
        )
        self._crew.claims = self._claims
        self._changing = threading.Lock()
        self._owner: lock.Ownership | None = None
        self._warnings: list[str] = []

    # coming and going

    def start(self) -> None:
        """Take up the deployments that there are; where another daemon has them, whoever asks for them is told."""
        if not self._layout.deployments.is_dir():
            return
        try:
            self._own()
        except AjError as error:
            self._log(f"deployments are not taken up: {error}")

    def stop(self) -> None:
        """Let go of all replicas; they go on."""
        self._crew.stop()
        if self._owner is not None:
            self._owner.release()

    def running(self) -> int:
        """Count the replicas that run, or are about to."""
        return self._crew.running() + sum(one.replicas for one in self._crew.all() if one.deleting_since is None)

    def _own(self) -> None:
        """Become the one that looks after them. Raises Refused naming another daemon, AjError."""
        with self._changing:
            if self._owner is not None:
                return
            owner = lock.own(self._layout.ownership(OWNERSHIP), f"socket {Place(self._layout).socket}")
            try:
                self._crew.adopt(self._warn)
            except BaseException:
                owner.release()
                raise
            self._owner = owner
        self._crew.begin()

    def _slot_is_free(self) -> None:
        self._jobs.tidy()
        self._lifecycle.wake()
        self._crew.wake()

    # asking

    def list(self) -> DeploymentList:
        """Return all deployments, by name."""
        self.start()
        known = self._crew.all() if self._owner else deployments.listing(self._layout, self._warn)
        return DeploymentList(tuple(self._status(one) for one in known), self._told())

    def show(self, name: str) -> DeploymentAnswer:
        """Return one deployment with its replicas and jobs. Raises NotFound."""
        self.start()
        if self._owner is None:
            known = {one.name: one for one in deployments.listing(self._layout, self._warn)}
            if name not in known:
                raise deployments.missing(name)
            return DeploymentAnswer(self._status(known[name]), self._told())
        return DeploymentAnswer(self._status(self._crew.get(name)), self._told())

    def _told(self) -> tuple[str, ...]:
        if self._owner is None and self._layout.deployments.is_dir():
            held = lock.refused(self._layout.ownership(OWNERSHIP))
            return (*self._warnings, f"the replicas are another daemon's: {held.message}")
        return tuple(self._warnings)

    def _status(self, one: Deployment) -> DeploymentStatus:
        living = self._lifecycle.living()
        members = tuple(self._crew.replicas(one)) if self._owner else ()
        able = (ReplicaState.READY, ReplicaState.BUSY)
        held = tuple(_holding(job) for job in held_by(living, one.name))
        ready = sum(member.state in able for member in members)
        return DeploymentStatus(
            name=one.name,
            uid=one.uid,
            state=_word(one, ready),
            command=redact.text(shlex.join(one.argv)),
            directory=one.directory,
            replicas=one.replicas,
            jobs_per_replica=one.jobs_per_replica,
            ready=ready,
            busy=sum(member.state is ReplicaState.BUSY for member in members),
            queued=len(queue_of(living, one.name)),
            unreleased=sum(holding.unreleased for holding in held),
            revision=one.revision,
            created_at=one.created_at,
            updated_at=one.updated_at,
            deleting_since=one.deleting_since,
            members=members,
            jobs=held,
        )

    # changing

    def create(self, asked: Create) -> DeploymentAnswer:
        """Make a deployment, durably, and start its replicas.

        Raises UserError, Refused when there is one of this name or another daemon has them all, AjError.
        """
        deployments.check_name(asked.name)
        self._own()
        with self._changing:
            if any(one.name == asked.name for one in self._crew.all()):
                raise deployments.taken(asked.name)
            self._check_size(asked.argv, asked.replicas, asked.jobs_per_replica, besides=None)
            now = rfc3339(self._clock.now())
            wanted = Deployment(
                name=asked.name,
                uid=os.urandom(8).hex(),
                argv=asked.argv,
                replicas=asked.replicas,
                directory=asked.directory,
                created_at=now,
                updated_at=now,
                jobs_per_replica=asked.jobs_per_replica,
                grace_s=asked.grace_s,
                env=asked.env,
                inherited=asked.inherited,
                umask=asked.umask,
            )
            deployments.create(self._layout, wanted)
            self._crew.want(wanted)
        return self.show(asked.name)

    def upgrade(self, name: str, asked: Upgrade) -> DeploymentAnswer:
        """Change a deployment: idle replicas are replaced at once, busy ones when their jobs have ended.

        Raises NotFound, UserError, Refused while it is being deleted, AjError.
        """
        self._own()
        with self._changing:
            before = self._mine(name)
            argv = before.argv if asked.argv is None else asked.argv
            replicas = before.replicas if asked.replicas is None else asked.replicas
            places = before.jobs_per_replica if asked.jobs_per_replica is None else asked.jobs_per_replica
            self._check_size(argv, replicas, places, besides=name)
            changed = replace(
                before,
                argv=argv,
                replicas=replicas,
                jobs_per_replica=places,
                directory=before.directory if asked.directory is None else asked.directory,
                env=before.env if asked.env is None else asked.env,
                inherited=before.inherited if asked.inherited is None else asked.inherited,
                updated_at=rfc3339(self._clock.now()),
            )
            scales_only = replace(changed, replicas=before.replicas, updated_at=before.updated_at) == before
            if not scales_only:
                changed = replace(changed, revision=before.revision + 1)
            deployments.save(self._layout, changed)
            self._crew.want(changed)
        if asked.force:
            self._crew.force(name)
        return self.show(name)

    def delete(self, name: str, force: bool) -> Done:
        """Let a deployment end; it is gone once its replicas are.

        Raises NotFound, Refused while it has unfinished jobs (with `force` they are terminated), AjError.
        """
        self._own()
        with self._changing:
            wanted = self._crew.get(name)
            with self._claims.guard:  # no job comes or is taken in between
                unfinished = self._claims.unfinished(name)
                if unfinished and not force:
                    ids = sorted(job.id for job in unfinished)
                    raise Refused(
                        f"`{name}` has {text.plural(len(ids), 'unfinished job')}: {', '.join(ids[:5])}",
                        code="has-jobs",
                        hint=f"`aj deployment delete {name} --force` terminates them",
                        details={"ids": ids},
                    )
                if wanted.deleting_since is None:
                    wanted = replace(wanted, deleting_since=rfc3339(self._clock.now()))
                    deployments.save(self._layout, wanted)
                    self._crew.want(wanted)
            for job in unfinished:
                self._claims.terminate(job.id, wanted.grace_s)
        self._slot_is_free()
        return Done("deleted", detail=name)

    def _mine(self, name: str) -> Deployment:
        found = self._crew.get(name)
        if found.deleting_since is not None:
            raise Refused(
                f"`{name}` is being deleted", code="deleting", hint="`aj deployment list` shows when it is gone"
            )
        return found

    def _check_size(self, argv: tuple[str, ...], replicas: int, places: int, *, besides: str | None) -> None:
        """Raise UserError on an empty command, Refused when all replicas together need too many connections."""
        if not argv or not argv[0]:
            raise UserError("a deployment needs a command", hint="`aj deployment create NAME -- COMMAND`")
        if replicas < 0 or places < 1:
            raise UserError("replicas are counted from 0, jobs of a replica from 1", code="bad-size")
        others = sum(one.replicas * (1 + one.jobs_per_replica) for one in self._crew.all() if one.name != besides)
        need = replicas * (1 + places)
        if others + need > MOST_LINES:
            raise Refused(
                f"{replicas} replicas with {text.plural(places, 'job')} each need {need} connections,"
                f" and {max(0, MOST_LINES - others)} of {MOST_LINES} are free",
                code="too-large",
                hint="one daemon serves about 24 replicas",
            )

    # jobs that are sent there

    def submit(self, name: str, project: Project | None, asked: Targeting) -> JobAnswer:
        """Admit a job that carries its id alone. The same call again, known by its nonce, gives the same job.

        Raises NotFound without such a deployment, Refused when the id is taken, UserError, AjError.
        """
        self._own()
        jobs.check_id(asked.id)
        if asked.timeout_s is not None and not 0 < asked.timeout_s < float("inf"):
            raise UserError(f"a timeout of {asked.timeout_s:g} s is no time", code="bad-timeout")
        key = project.key if project else NO_PROJECT
        self._open_project(project)
        self._jobs.adopt(key)
        with self._claims.guard, self._lifecycle.alone(asked.id):
            self._mine(name)
            if jobs.exists(self._layout, asked.id):
                self._known(asked, name)
                return self._jobs.show(asked.id)
            now = self._clock.now()
            job = Workload(
                id=asked.id,
                name=asked.id,
                service=SERVICE,
                template="",
                project=str(project.directory) if project else None,
                project_key=key,
                ticket="",
                state=JobState.QUEUED,
                created_at=rfc3339(now),
                submitted_at=rfc3339(now),
                needs=Needs(),
                deadline_at=None if asked.timeout_s is None else now + asked.timeout_s,
                agent=asked.agent,
                session=asked.session,
                session_title=asked.session_title,
                targeted=Targeted(name, asked.nonce),
            )
            self._lifecycle.admit(job)
        self._crew.wake()
        return self._jobs.show(asked.id)

    def _known(self, asked: Targeting, name: str) -> None:
        """Raise Refused unless this very call admitted the job before."""
        target = self._lifecycle.get(asked.id).targeted
        if target is not None and target.deployment == name and asked.nonce and target.nonce == asked.nonce:
            return
        hint = f"`aj resubmit {asked.id}` runs it again; or choose another id"
        raise Refused(f"there is a job {asked.id} already", code="job-exists", hint=hint, details={"id": asked.id})

    def terminate(self, job_id: str, grace_s: float | None) -> None:
        """End a targeted job. Raises NotFound, AjError."""
        self._claims.terminate(job_id, grace_s)
        self._slot_is_free()

    def check_resubmission(self, name: str) -> None:
        """Raise NotFound, Refused when a job that runs again would find no deployment there."""
        self._own()
        self._mine(name)

    def observe(self, job_id: str, revision: int, wait_s: float) -> ClaimAnswer:
        """Wait for what becomes of the first claim of a submission. Raises NotFound, UserError for another job."""
        self._lifecycle.wait(lambda: self._observed(job_id, revision).outcome is not ClaimState.PENDING, wait_s)
        return self._observed(job_id, revision)

    def _observed(self, job_id: str, revision: int) -> ClaimAnswer:
        job = self._lifecycle.get(job_id)
        if job.targeted is None:
            raise UserError(f"job {job_id} was sent to no deployment", code="not-targeted")
        deadline = rfc3339(job.deadline_at) if job.deadline_at is not None else None
        return ClaimAnswer(_outcome(job, revision), job.claimed, job.submission_revision, deadline)

    # what replicas ask

    def bearer(self, token: str) -> Bearer:
        """Return which replica this is. Raises AuthError, Refused when that start of it is over."""
        who = tokens.read(self._crew.key, token, self._clock.now()) if self._crew.key else None
        if who is None:
            raise tokens.refused("this daemon has no deployments")
        if not self._crew.is_current(who.deployment, who.slot, who.attempt) or self._uid(who) != who.uid:
            raise Refused(f"replica {who.slot} of `{who.deployment}` was replaced", code="replaced")
        return who

    def _uid(self, who: Bearer) -> str | None:
        return next((one.uid for one in self._crew.all() if one.name == who.deployment), None)

    def candidate(self, who: Bearer, wait_s: float) -> Candidate | None:
        """Return the job that a replica may claim next, waiting for one at most so long."""
        self._crew.hear(who)
        return self._claims.candidate(who, min(wait_s, LONGEST_WAIT_S))

    def claim(self, who: Bearer, job_id: str, execution_id: str, revision: int, previous: str | None) -> SelectedJob:
        """Start a queued job for a replica. Raises as `Claims.claim`."""
        return self._claims.claim(who, job_id, execution_id, revision, previous)

    def cancellation(self, who: Bearer, job_id: str, execution_id: str, wait_s: float) -> bool:
        """Wait until a job is terminated, at most so long; True only then."""
        return self._claims.cancellation(who, job_id, execution_id, min(wait_s, LONGEST_WAIT_S))

    def outcome(self, who: Bearer, job_id: str, execution_id: str, said: Ending, message: str | None) -> Done:
        """End an execution. Raises as `Claims.outcome`."""
        return Done(self._claims.outcome(who, job_id, execution_id, said, message).state.value)

    def cleanup(self, who: Bearer, job_id: str, execution_id: str) -> Done:
        """Free the slot of a terminated job. Raises as `Claims.cleanup`."""
        self._claims.cleanup(who, job_id, execution_id)
        return Done()

    def _warn(self, words: str) -> None:
        self._log(words)
        if words not in self._warnings:
            self._warnings.append(words)


def _holding(job: Workload) -> Holding:
    held = job.targeted.held if job.targeted is not None else None
    assert held is not None, "only jobs in slots come here"
    return Holding(job.id, held.id, held.slot, held.claimed_at, unreleased=job.state.is_final)


def _word(one: Deployment, ready: int) -> str:
    """Say in a word how a deployment is."""
    if one.deleting_since is not None:
        return "deleting"
    if ready >= one.replicas:
        return "ready"
    return "partly ready" if ready else "not ready"


def _outcome(job: Workload, revision: int) -> ClaimState:
    if job.submission_revision != revision:
        return ClaimState.CHANGED
    if job.claimed:
        return ClaimState.CLAIMED
    if job.state is JobState.TERMINATED:
        return ClaimState.TERMINATED
    if job.state is JobState.FAILED and job.reason == EXPIRED:
        return ClaimState.EXPIRED
    return ClaimState.PENDING
