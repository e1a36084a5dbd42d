"""Who gets which job of a deployment, and how each ends: the claim protocol, over the records of the jobs.

The record of a job is the whole truth. Every decision is one write of one record, made under one lock, so a
daemon that is killed anywhere leaves a job that was taken or one that was not. These hold at any moment:

    - of one job at one point of its history, at most one execution ever succeeds in claiming it
    - an execution that was told it does not get a job never gets it, though its claim arrives once more
    - a deadline that has passed without a claim ends the job in the same step that a claim would need
    - that a submission was claimed is never unsaid, but by the next submission
    - a job whose share of the machine would pass a cap on spending is not taken
    - a replica holds no more jobs than it has slots; a slot is free when the work in it has certainly ended
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Protocol

from aj.base import crash, units
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.engine import scheduler
from aj.engine.drive import GRACE_S, HOST_LOST, Log
from aj.engine.gate import Gate
from aj.engine.lifecycle import Lifecycle, housed, without_host
from aj.model.claim import LONGEST_MESSAGE, SAID, Bearer, Candidate, Ending, Execution, SelectedJob, Targeted
from aj.model.spend import Prices
from aj.model.state import JobState, Mover
from aj.model.workload import Host, Workload
from aj.store import claims
from aj.store.layout import Layout

MOST_TRIES = scheduler.SETUP_ATTEMPTS  # of one submission, whether asked for by the application or by lost replicas
EXPIRED = "claim-deadline-expired"
STALE, USED, OVER, TERMINATED = "candidate-stale", "execution-used", "execution-over", "terminated"

S = JobState


class Crew(Protocol):
    """The replicas, as far as claims depend on them. May be asked at any time; none of these waits."""

    def is_current(self, deployment: str, slot: int, attempt: int) -> bool:
        """Whether this start of a replica may still be running."""

    def may_claim(self, who: Bearer) -> bool:
        """Whether a replica takes more jobs: it is not about to end."""

    def places(self, deployment: str) -> int:
        """How many jobs one replica holds at once."""

    def fence(self, deployment: str, slot: int, attempt: int) -> None:
        """End this start of a replica by force. Once it is no longer current, its jobs are released."""


class Claims:
    """The claims of all deployments. Safe to use from any thread. `released` is told of a freed slot.

    `deciding` gives what may start by what it costs; a claim is decided within it.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        layout: Layout,
        clock: Clock,
        crew: Crew,
        *,
        released: Callable[[], None] = lambda: None,
        log: Log = lambda _: None,
        deciding: Callable[[], AbstractContextManager[Gate]] = lambda: nullcontext(Gate((), Prices(), None, 0.0, {})),
    ) -> None:
        self._lifecycle = lifecycle
        self._layout = layout
        self._clock = clock
        self._crew = crew
        self._released = released
        self._log = log
        self._deciding = deciding
        self.guard = threading.RLock()

    # finding work

    def candidate(self, who: Bearer, wait_s: float) -> Candidate | None:
        """Return the job that this replica may claim next, waiting for one at most so long. Changes nothing."""
        limit = self._clock.monotonic() + wait_s
        while True:
            refused = self._refused(who.deployment)
            found = self._first(who, refused)
            left_s = limit - self._clock.monotonic()
            if found is not None or left_s <= 0:
                return found
            due_s = self._next_due_s(who.deployment, refused)
            pause_s = left_s if due_s is None else min(left_s, max(0.01, due_s))
            self._lifecycle.wait(partial(self._has_one, who, refused), pause_s)

    def _has_one(self, who: Bearer, refused: Collection[str]) -> bool:
        return self._first(who, refused) is not None

    def _refused(self, deployment: str) -> set[str]:
        """Return the jobs in line that a cap on spending holds back, and tell them so."""
        with self._deciding() as gate:
            line = queue_of(self._lifecycle.living(), deployment)
            told = {job.id: gate.refusal(job) for job in line}
        for job in line:
            if told[job.id] != job.waiting_for:
                self._lifecycle.say_waiting(job.id, told[job.id])
        return {job_id for job_id, words in told.items() if words is not None}

    def _first(self, who: Bearer, refused: Collection[str]) -> Candidate | None:
        if not self._crew.may_claim(who):
            return None
        living = self._lifecycle.living()
        if _taken(living, who.deployment, who.slot) >= self._crew.places(who.deployment):
            return None
        now = self._clock.now()
        line = scheduler.in_line(queue_of(living, who.deployment))
        free = (job for job in line if job.id not in refused)
        ready = (job for job in free if scheduler.due(job) <= now and not is_expired(job, now))
        return next((_candidate(job) for job in ready), None)

    def _next_due_s(self, deployment: str, refused: Collection[str]) -> float | None:
        now = self._clock.now()
        queued = queue_of(self._lifecycle.living(), deployment)
        again = [AGAIN_S] if refused else []
        return min((*again, *(at - now for job in queued if (at := scheduler.due(job)) > now)), default=None)

    # taking it

    def claim(self, who: Bearer, job_id: str, execution_id: str, revision: int, previous: str | None) -> SelectedJob:
        """Start a queued job for this replica, if it stands exactly where the replica saw it.

        The same execution again gives the same answer. Raises Refused: `candidate-stale` when somebody else was
        first, it changed, or this replica may not have it now, `execution-used` when this execution had the job and
        has it no more; AjError when the disk refuses.
        """
        if not 0 < len(execution_id) <= 64:
            raise UserError("an execution id has 1 to 64 characters", code="bad-execution")
        with self.guard, self._lifecycle.alone(job_id):
            job = self._find(job_id, who.deployment)
            target = _targeted(job)
            if target.held is not None and target.held.id == execution_id:
                return _selected(job, target.held)
            if self._is_over(job, execution_id):
                raise Refused(f"execution {execution_id} is over", code=USED)
            if claims.was_refused(self._layout.job(job_id), execution_id):
                raise _stale(f"execution {execution_id} was refused already")
            self._expire(job)
            _check_place(self._lifecycle.get(job_id), revision, previous)
            with self._deciding() as gate:
                refusal = self._not_now(who, job) or gate.refusal(job)
                if refusal is not None:
                    # what holds it back may be gone when the same claim, long on its way, arrives once more
                    claims.refuse(self._layout.job(job_id), execution_id)
                    raise _stale(f"job {job_id} is {refusal}")
                return self._take(who, job, execution_id, gate.price(job))

    def _not_now(self, who: Bearer, job: Workload) -> str | None:
        """Say why a replica may not have a job just now; None when it may."""
        if scheduler.due(job) > self._clock.now():
            return "not due yet"
        if not self._crew.may_claim(who):
            return "not for this replica, which takes no more"
        if _taken(self._lifecycle.living(), who.deployment, who.slot) >= self._crew.places(who.deployment):
            return "not for this replica, whose every slot holds a job"
        return None

    def _take(self, who: Bearer, job: Workload, execution_id: str, price: int | None) -> SelectedJob:
        target, now = _targeted(job), rfc3339(self._clock.now())
        held = Execution(execution_id, job.submission_revision, _last_id(target), who.slot, who.attempt, now)
        taken = replace(target, claimed=True, claimed_at=target.claimed_at or now, held=held)
        crash.point("claim.before-write")
        hosts = housed(job, now, price)
        changes: dict[str, object] = {"targeted": taken, "hosts": hosts, "attempt": job.attempt + 1, "retry": None}
        moved = self._lifecycle.move(job.id, S.RUNNING, Mover.DRIVER, None, waiting_for=None, **changes)
        crash.point("claim.after-write")
        return _selected(moved, held)

    # while it runs, and its end

    def cancellation(self, who: Bearer, job_id: str, execution_id: str, wait_s: float) -> bool:
        """Wait until the job of this execution is terminated, at most so long; True only then."""
        self._find(job_id, who.deployment)

        def is_cancelled() -> bool:
            job = self._lifecycle.held(job_id)
            held = job.targeted.held if job is not None and job.targeted is not None else None
            return held is not None and held.id == execution_id and job is not None and job.state is S.TERMINATED

        def is_over() -> bool:
            job = self._lifecycle.held(job_id)
            held = job.targeted.held if job is not None and job.targeted is not None else None
            return held is None or held.id != execution_id

        self._lifecycle.wait(lambda: is_cancelled() or is_over(), wait_s)
        return is_cancelled()

    def outcome(self, who: Bearer, job_id: str, execution_id: str, said: Ending, message: str | None) -> Workload:
        """End an execution as its application says; the same word again changes nothing.

        Raises Refused: `terminated` when its user has ended the job (then `cleanup` is due), `execution-over`
        when this execution does not have the job any more; UserError, AjError.
        """
        _check_said(said, message)
        with self.guard, self._lifecycle.alone(job_id):
            job = self._find(job_id, who.deployment)
            held = _targeted(job).held
            if held is None or held.id != execution_id:
                return self._said_before(job, execution_id, said)
            if job.state is S.TERMINATED:
                hint = "`cleanup()` frees the slot"
                raise Refused(f"job {job_id} was terminated", code=TERMINATED, hint=hint)
            crash.point("outcome.before-write")
            moved = self._end(job, held, said, message)
            crash.point("outcome.after-write")
        self._released()
        return moved

    def _said_before(self, job: Workload, execution_id: str, said: Ending) -> Workload:
        """Return the job when this execution ended by the same word. Raises Refused when it did not."""
        over = self._over(job, execution_id)
        if over is None:
            raise Refused(f"job {job.id} has no execution {execution_id}", code=OVER)
        if over.ending is said:
            return job
        code = TERMINATED if over.ending in (Ending.CLEANED, Ending.FENCED) else OVER
        raise Refused(f"execution {execution_id} has ended already: {over.ending}", code=code)

    def _end(self, job: Workload, held: Execution, said: Ending, message: str | None) -> Workload:
        ended = self._freed(job, held, said, message)
        if said is Ending.RETRYABLE:
            return self._again(job, replace(ended, retries=ended.retries + 1), message)
        state = {Ending.COMPLETED: S.COMPLETED, Ending.ERRORED: S.ERRORED, Ending.INVALID: S.INVALID}[said]
        reason = None if said is Ending.COMPLETED else said.value
        code = {Ending.COMPLETED: 0}.get(said)
        over = {"targeted": ended, "hosts": self._given_back(job), "reason": reason, "exit_code": code}
        return self._lifecycle.move(job.id, state, Mover.DRIVER, message, **over)

    def _again(self, job: Workload, ended: Targeted, message: str | None) -> Workload:
        """Put a job whose application wants another try back where it stood in the line, not due before a while."""
        words, hosts = message or "the application asked for another try", self._given_back(job)
        if ended.retries >= MOST_TRIES:
            words = f"{MOST_TRIES} tries did not end it, the last time: {words}"
            return self._lifecycle.move(
                job.id, S.FAILED, Mover.DRIVER, words, targeted=ended, hosts=hosts, reason="retries-exhausted"
            )
        later = scheduler.pause(ended.retries, words, self._clock.now())
        self._lifecycle.move(job.id, S.RETRYING, Mover.DRIVER, words, targeted=ended, hosts=hosts, retry=later)
        return self._lifecycle.move(job.id, S.QUEUED, Mover.SCHEDULER, words)

    def cleanup(self, who: Bearer, job_id: str, execution_id: str) -> None:
        """Free the slot of a terminated job whose work is put away; again is fine.

        Raises Refused while the job runs, or when this execution never had it.
        """
        with self.guard, self._lifecycle.alone(job_id):
            job = self._find(job_id, who.deployment)
            held = _targeted(job).held
            if held is not None and held.id == execution_id:
                if job.state is not S.TERMINATED:
                    hint = "`complete()`, `error()`, `invalid()` or `retry()` ends it"
                    raise Refused(f"job {job_id} is {job.state}", code="not-terminated", hint=hint)
                self._release(job, held, Ending.CLEANED)
            elif self._over(job, execution_id) is None:
                raise Refused(f"job {job_id} has no execution {execution_id}", code=OVER)
        self._released()

    # what nobody says

    def terminate(self, job_id: str, grace_s: float | None) -> None:
        """End a job for its user. One that a replica holds keeps its slot until that has put it away.

        When the grace is over before, its replica is ended. Raises NotFound, AjError.
        """
        with self.guard, self._lifecycle.alone(job_id):
            job = self._lifecycle.get(job_id)
            if job.state.is_final:
                return
            held = job.targeted.held if job.targeted is not None else None
            self._lifecycle.move(
                job_id,
                S.TERMINATED,
                Mover.USER,
                "terminated" if held else "terminated before it ran",
                reason="terminated",
                terminating_since=rfc3339(self._clock.now()),
                grace_s=GRACE_S if grace_s is None else grace_s,
                cleanup_error=f"replica {held.slot} has not put its work away" if held else None,
            )

    def round(self) -> float | None:
        """Do what is due: end what nobody claimed in time, fence what does not end, release what was lost.

        Returns the moment of the next of these, seconds since the epoch, or None.
        """
        moments = [self._look_at(job) for job in self._lifecycle.living() if job.targeted is not None]
        return min((at for at in moments if at is not None), default=None)

    def _look_at(self, job: Workload) -> float | None:
        try:
            with self.guard, self._lifecycle.alone(job.id):
                return self._settle(self._lifecycle.get(job.id))
        except NotFound:
            return None  # it was deleted meanwhile
        except AjError as error:
            self._log(f"job {job.id}: {error}")
            return self._clock.now() + AGAIN_S

    def _settle(self, job: Workload) -> float | None:
        target = _targeted(job)
        if target.held is not None:
            return self._settle_held(job, target, target.held)
        if job.state in (S.RETRYING, S.RECOVERING):  # an earlier daemon came no further
            by = Mover.SCHEDULER if job.state is S.RETRYING else Mover.MONITOR
            job = self._lifecycle.move(job.id, S.QUEUED, by, job.message)
        if self._expire(job):
            return None
        return job.deadline_at if job.state is S.QUEUED and not target.claimed else None

    def _settle_held(self, job: Workload, target: Targeted, held: Execution) -> float | None:
        if not self._crew.is_current(target.deployment, held.slot, held.attempt):
            self._lose(job, held)
            self._released()
            return None
        if job.state is not S.TERMINATED or job.terminating_since is None:
            return None
        fence_at = from_rfc3339(job.terminating_since) + (GRACE_S if job.grace_s is None else job.grace_s)
        if fence_at > self._clock.now():
            return fence_at
        self._crew.fence(target.deployment, held.slot, held.attempt)
        return None

    def _lose(self, job: Workload, held: Execution) -> None:
        """Take a job from a replica that has ended: it runs again, unless it is over."""
        if job.state.is_final:
            self._release(job, held, Ending.FENCED if job.state is S.TERMINATED else Ending.LOST)
            return
        words = f"replica {held.slot} ended while it had the job"
        ended, losses = self._freed(job, held, Ending.LOST, words), job.recoveries + 1
        # The first loss may be the machine's; a job that loses one replica after the other is slowed down.
        later = scheduler.pause(losses - 1, words, self._clock.now()) if losses > 1 else None
        lost = {"targeted": ended, "hosts": self._given_back(job), "retry": later}
        self._lifecycle.move(job.id, S.RECOVERING, Mover.MONITOR, words, **lost)
        if losses >= MOST_TRIES:
            self._lifecycle.move(job.id, S.FAILED, Mover.MONITOR, words, reason=HOST_LOST)
        else:
            self._lifecycle.move(job.id, S.QUEUED, Mover.MONITOR, words)

    def _release(self, job: Workload, held: Execution, ending: Ending) -> None:
        freed = self._freed(job, held, ending, None)
        self._lifecycle.note(job.id, targeted=freed, hosts=self._given_back(job))

    def _given_back(self, job: Workload) -> tuple[Host, ...]:
        """Return the hosts of a job whose slot is free: its share of the machine costs nothing any more."""
        return without_host(job, rfc3339(self._clock.now()), released=True)

    def _freed(self, job: Workload, held: Execution, ending: Ending, message: str | None) -> Targeted:
        """Return the job's part without a holder; what was over before is put on file first."""
        target = _targeted(job)
        if target.last is not None:
            claims.append(self._layout.job(job.id), target.last)
        over = replace(held, ending=ending, message=message, ended_at=rfc3339(self._clock.now()))
        return replace(target, held=None, last=over)

    def _expire(self, job: Workload) -> bool:
        """End a job whose first claim did not come in time; whether it did."""
        if not is_expired(job, self._clock.now()):
            return False
        waited = units.duration((job.deadline_at or 0) - from_rfc3339(job.submitted_at))
        words = f"no replica took it up within {waited}"
        self._lifecycle.move(job.id, S.FAILED, Mover.SCHEDULER, words, reason=EXPIRED)
        return True

    # looking

    def holds(self, deployment: str, slot: int) -> int:
        """Count the jobs that one replica holds."""
        return _taken(self._lifecycle.living(), deployment, slot)

    def unfinished(self, deployment: str) -> list[Workload]:
        """Return the jobs of a deployment that have not ended, or that a replica still holds."""
        living = [job for job in self._lifecycle.living() if job.targeted and job.targeted.deployment == deployment]
        return [job for job in living if not job.state.is_final or job.holds_slot]

    def _find(self, job_id: str, deployment: str) -> Workload:
        """Return a job of this deployment. Raises NotFound."""
        job = self._lifecycle.get(job_id)
        if job.targeted is None or job.targeted.deployment != deployment:
            raise NotFound(f"no job {job_id} of deployment `{deployment}`", code="no-such-job")
        return job

    def _is_over(self, job: Workload, execution_id: str) -> bool:
        return self._over(job, execution_id) is not None

    def _over(self, job: Workload, execution_id: str) -> Execution | None:
        """Return an execution of this job that has ended, or None."""
        last = _targeted(job).last
        if last is not None and last.id == execution_id:
            return last
        return claims.find(self._layout.job(job.id), execution_id)


AGAIN_S = 5.0  # after a disk refused to take what has to be written


def _check_place(job: Workload, revision: int, previous: str | None) -> None:
    """Raise Refused unless a job waits where the replica saw it; it never comes back to a place that it has left."""
    is_there = job.submission_revision == revision and previous == _last_id(_targeted(job))
    if job.state is not S.QUEUED or not is_there:
        raise _stale(f"job {job.id} is not where it was: {job.state}")


def queue_of(living: Iterable[Workload], deployment: str) -> list[Workload]:
    """Return the queued jobs of one deployment, in no order."""
    return [
        job
        for job in living
        if job.state is S.QUEUED and job.targeted is not None and job.targeted.deployment == deployment
    ]


def held_by(living: Iterable[Workload], deployment: str) -> list[Workload]:
    """Return the jobs that replicas of a deployment hold."""
    return [job for job in living if job.holds_slot and job.targeted and job.targeted.deployment == deployment]


def is_expired(job: Workload, now: float) -> bool:
    """Whether a job waited longer for its first claim than its submission allows."""
    waits = job.state is S.QUEUED and job.targeted is not None and not job.targeted.claimed
    return waits and job.deadline_at is not None and job.deadline_at <= now


def _targeted(job: Workload) -> Targeted:
    assert job.targeted is not None, "only jobs of deployments come here"
    return job.targeted


def _last_id(target: Targeted) -> str | None:
    return target.last.id if target.last is not None else None


def _taken(living: Iterable[Workload], deployment: str, slot: int) -> int:
    """Count the slots of one replica that hold a job."""
    mine = held_by(living, deployment)
    return sum(1 for job in mine if job.targeted and job.targeted.held and job.targeted.held.slot == slot)


def _candidate(job: Workload) -> Candidate:
    return Candidate(job.id, job.submission_revision, _last_id(_targeted(job)))


def _selected(job: Workload, held: Execution) -> SelectedJob:
    return SelectedJob(
        job.id, job.submission_revision, held.id, held.previous, _targeted(job).deployment, held.claimed_at
    )


def _stale(words: str) -> Refused:
    return Refused(words, code=STALE, hint="look for another one")


def _check_said(said: Ending, message: str | None) -> None:
    """Raise UserError on a word or a message that no application may say."""
    if said not in SAID:
        raise UserError(f"`{said}` is none of {', '.join(SAID)}", code="bad-outcome")
    if said is not Ending.COMPLETED and not message:
        raise UserError(f"`{said}` needs a message", code="bad-outcome")
    if message is not None and len(message) > LONGEST_MESSAGE:
        raise UserError(
            f"the message has {len(message)} characters, the limit is {LONGEST_MESSAGE}", code="bad-outcome"
        )
