"""The one door through which a job changes its state.

Every move is checked against the table of allowed moves, written to disk, then made known: to whoever
waits for a change, and to the hub. The first final state wins; whoever comes later gets a conflict. A
final state is left only by a resubmission, and only when everything of the last run is cleaned up.

Jobs that may still change are kept in memory; the others are read from disk when somebody asks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from aj.base import crash
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError, Refused
from aj.model.claim import Targeted
from aj.model.json import Json
from aj.model.state import JobState, Mover, may_move
from aj.model.workload import Event, Host, Workload
from aj.store import jobs
from aj.store.layout import Layout

Publish = Callable[[Workload], None]


class Books(Protocol):
    """Who keeps account of what jobs cost, beyond the time that they are in memory or on record."""

    def left(self, job: Workload) -> None:
        """Hear of a job that nothing more will happen to for now. Its record stays."""

    def settle(self, job: Workload) -> None:
        """Write down what a job cost that is about to be removed. Raises AjError; it is not removed then."""


class NoBooks:
    """Nobody keeps account."""

    def left(self, job: Workload) -> None: ...

    def settle(self, job: Workload) -> None: ...


class Lifecycle:
    """The jobs that this daemon drives, as they stand now. Safe to use from any thread."""

    def __init__(self, layout: Layout, clock: Clock, publish: Publish, books: Books | None = None) -> None:
        self.books: Books = books or NoBooks()
        self._layout = layout
        self._clock = clock
        self._publish = publish
        self._jobs: dict[str, Workload] = {}
        self._owed: dict[str, list[Event]] = {}  # events whose line the disk refused
        self._writing: dict[str, threading.RLock] = {}
        self._changed = threading.Condition()

    def admit(self, workload: Workload) -> Workload:
        """Begin the life of a job, durably. Raises Refused when its id is taken."""
        born = replace(workload, last_event=_event(workload, rfc3339(self._clock.now()), None))
        jobs.create(self._layout, born)
        self._keep(born)
        self._publish(born)
        return born

    def adopt(self, workload: Workload) -> None:
        """Take over a job that an earlier daemon left, and complete its history. Raises AjError."""
        jobs.repair(self._layout, workload)
        self._keep(workload)

    def get(self, job_id: str) -> Workload:
        """Return a job as it stands, without its `spec`. Raises NotFound."""
        return self._jobs.get(job_id) or jobs.read(self._layout, job_id)

    def held(self, job_id: str) -> Workload | None:
        """Return a job that is in memory, or None."""
        return self._jobs.get(job_id)

    def living(self) -> list[Workload]:
        """Return the jobs in memory: all that are not final and cleaned, in no order."""
        with self._changed:
            return list(self._jobs.values())

    def move(self, job_id: str, target: JobState, by: Mover, message: str | None = None, **changes: object) -> Workload:
        """Change the state of a job, durably, together with other fields of its record.

        Raises Refused when this mover may not make this move, AjError when the disk refuses; nothing
        has changed then.
        """
        with self._turn(job_id):
            job = self.get(job_id)
            _guard(job, target, by)
            now = rfc3339(self._clock.now())
            stamped = replace(job, state=target, message=message, **_stamps(job, target, now))  # type: ignore[arg-type]
            moved = replace(stamped, **changes)  # type: ignore[arg-type]
            moved = replace(moved, last_event=_event(moved, now, message))
            jobs.save(self._layout, moved)
            self._write_events(moved)
            self._keep(moved)
        self._publish(moved)
        return moved

    def note(self, job_id: str, **changes: object) -> Workload:
        """Change fields of a record, durably, without a change of state. Raises NotFound, AjError."""
        with self._turn(job_id):
            noted = replace(self.get(job_id), **changes)  # type: ignore[arg-type]
            jobs.save(self._layout, noted)
            self._keep(noted)
        return noted

    def remember(self, job_id: str, **changes: object) -> Workload:
        """Change fields in memory alone, when the disk refuses what must not wait for it."""
        with self._turn(job_id):
            job = replace(self.get(job_id), **changes)  # type: ignore[arg-type]
            self._keep(job)
        return job

    def say_waiting(self, job_id: str, words: str | None) -> None:
        """Tell why a job does not run yet. In memory only: the words change with every other job."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None and job.state is JobState.QUEUED and job.waiting_for != words:
                self._jobs[job_id] = replace(job, waiting_for=words)
                self._changed.notify_all()

    def forget(self, job_id: str) -> None:
        """Drop a job from memory, once nothing more will happen to it."""
        job = self._jobs.get(job_id)
        if job is not None:
            self.books.left(job)
        with self._changed:
            self._jobs.pop(job_id, None)
            self._owed.pop(job_id, None)
            self._changed.notify_all()

    def remove(self, job_id: str) -> None:
        """Remove a job with everything it left, once it is written down what it cost. Raises NotFound, AjError."""
        with self._turn(job_id):
            self.books.settle(self.get(job_id))
            crash.point("spend.after-settling")
            jobs.remove(self._layout, job_id)
            self.forget(job_id)

    def wait(self, until: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until the condition holds; it is asked anew after every change. False when the time is over."""
        with self._changed:
            return self._changed.wait_for(until, timeout_s)

    @contextlib.contextmanager
    def alone(self, job_id: str) -> Iterator[None]:
        """Let no other thread change this job during the block."""
        with self._turn(job_id):
            yield

    def wake(self) -> None:
        """Let everybody who waits look again."""
        with self._changed:
            self._changed.notify_all()

    def _keep(self, job: Workload) -> None:
        with self._changed:
            if job.id in self._jobs or not job.is_over:
                self._jobs[job.id] = replace(job, spec=None)
            self._changed.notify_all()

    def _turn(self, job_id: str) -> threading.RLock:
        """The lock of one job's record: writers of one job wait for each other, readers never."""
        with self._changed:
            return self._writing.setdefault(job_id, threading.RLock())

    def _write_events(self, job: Workload) -> None:
        """Add the newest event's line, and those that the disk refused earlier."""
        owed = self._owed.setdefault(job.id, [])
        if job.last_event is not None:
            owed.append(job.last_event)
        try:
            while owed:
                jobs.append_event(self._layout, job.id, owed[0])
                owed.pop(0)
        except AjError:
            return  # the record has the newest event, and the next move tries the line again


def _guard(job: Workload, target: JobState, by: Mover) -> None:
    """Refuse what the table does not allow."""
    if job.state.is_final and target.is_final:
        raise Refused(f"job {job.id} has already ended: {job.state}", code="already-ended")
    if not may_move(job.state, target, by):
        raise Refused(f"job {job.id} cannot go from {job.state} to {target}", code="illegal-move")
    if job.state.is_final and job.cleaned_at is None:
        why = f": {job.cleanup_error}" if job.cleanup_error else ""
        raise Refused(
            f"job {job.id} is not cleaned up yet{why}",
            code="not-cleaned",
            hint=f"`aj resubmit {job.id} --when-clean` runs it again as soon as it is",
        )


def _stamps(job: Workload, target: JobState, now: str) -> Mapping[str, object]:
    """The fields that follow from the move itself."""
    if target.is_final:
        return {"completed_at": now, "waiting_for": None, "retry": None}
    if target is JobState.PROVISIONING:
        return {"setup_attempt": job.setup_attempt + 1, "waiting_for": None, "retry": None, "hosts": housed(job, now)}
    if target is JobState.STARTING:
        return {"attempt": job.attempt + 1}
    if target is JobState.RUNNING:
        return {"started_at": now}
    if target is JobState.RECOVERING:
        return {"recoveries": job.recoveries + 1, "setup_attempt": 0, "recover_for": None, "ran_s": ran_s(job, now)}
    if job.state.is_final:
        return _fresh(job, now)
    return {}


def housed(job: Workload, now: str, price: int | None = None) -> tuple[Host, ...]:
    """Return the hosts of a job that begins its setup: the last one while it is of use, else one more at a price."""
    if has_host(job):
        return job.hosts
    return (*job.hosts, Host(now, price=price))


def has_host(job: Workload) -> bool:
    """Tell whether a job has a host that is paid for."""
    return job.host is not None and job.host.ended_at is None


def without_host(job: Workload, now: str, *, released: bool = False) -> tuple[Host, ...]:
    """Return the hosts of a job that has no more use for the last one; with `released` it is confirmed to be gone."""
    if job.host is None:
        return job.hosts
    ended = replace(job.host, ended_at=job.host.ended_at or now)
    return (*job.hosts[:-1], replace(ended, released_at=ended.released_at or (now if released else None)))


def ran_s(job: Workload, now: str) -> float:
    """Return how many seconds the processes of this submission have run until now, over all its starts."""
    if job.started_at is None or job.state not in (JobState.RUNNING, JobState.FINALIZING):
        return job.ran_s
    return job.ran_s + max(0.0, from_rfc3339(now) - from_rfc3339(job.started_at))


def _fresh(job: Workload, now: str) -> Mapping[str, object]:
    """A resubmission: the same job, its next revision. `attempt` counts on, for logs are kept by it."""
    return {
        "submission_revision": job.submission_revision + 1,
        "submitted_at": now,
        "setup_attempt": 0,
        "recoveries": 0,
        "deadline_at": None,
        "retry": None,
        "waiting_for": None,
        "started_at": None,
        "completed_at": None,
        "cleaned_at": None,
        "cleanup_error": None,
        "data_error": None,
        "exit_code": None,
        "oom_killed": False,
        "reason": None,
        "terminating_since": None,
        "grace_s": None,
        "recover_for": None,
        "resubmit_when_clean": False,
        "resubmit_timeout_s": None,
        "resubmit_image_digest": None,
        "preempted": False,
        "can_restart": False,
        "ran_s": 0.0,
        "notes": (),
        "facts": {},
        "targeted": unclaimed(job.targeted),
    }


def unclaimed(target: Targeted | None) -> Targeted | None:
    """Return a job's part in a deployment as it is submitted again; what was over stays known."""
    return None if target is None else replace(target, claimed=False, claimed_at=None, retries=0)


def _event(job: Workload, now: str, message: str | None) -> Event:
    """The change into the state that the record now has."""
    number = job.last_event.number + 1 if job.last_event else 1
    return Event(number, job.state, now, message, _metadata(job, job.state))


def _metadata(job: Workload, state: JobState) -> Mapping[str, Json]:
    """What a reader of the history wants beside the state."""
    found: dict[str, Json] = {}
    if state is JobState.QUEUED and job.submission_revision:
        found["submission_revision"] = job.submission_revision
    if state.is_setup:
        found["setup_attempt"] = job.setup_attempt
    if state in (JobState.STARTING, JobState.RUNNING):
        found["attempt"] = job.attempt
    if state.is_final:
        found |= {"exit_code": job.exit_code, "reason": job.reason}
    if job.targeted is not None and job.targeted.held is not None and state is JobState.RUNNING:
        found |= {"execution": job.targeted.held.id, "replica": job.targeted.held.slot}
    if state is JobState.RETRYING and job.retry is not None:
        found |= {"cause": job.retry.cause, "earliest_at": job.retry.earliest_at}
    return found
