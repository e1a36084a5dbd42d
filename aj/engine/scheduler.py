"""Which queued job starts next, and why the others wait: pure, from the records and what the place has.

Strictly first come, first served by the time of submission: the oldest job that is due goes first, and
while it does not fit, nothing younger overtakes it. So a large job never starves, and the place may
stand partly idle before it starts. A job whose next try is not due yet keeps its place in the line but
holds nobody up, and neither does one that a cap on spending holds back.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from aj.base import text, units
from aj.base.clock import rfc3339
from aj.base.noun import dataclass
from aj.model import workload
from aj.model.state import JobState
from aj.model.workload import Needs, Retry, Workload

SETUP_PLACES = 50  # jobs that may be between queued and running at once
SETUP_ATTEMPTS = 100  # then a job has failed
FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 600.0
SPREAD = 0.2  # so that jobs that failed together do not try together
KNOWN_CAUSES = ("capacity", "quota")  # what a user can do something about
GPUS = "gpu_indices"  # the fact in which a job's own GPUs stand


@dataclass(frozen=True)
class Place:
    """What one service has as a whole, and how many jobs may be there at once."""

    capacity: Needs
    slots: int


@dataclass(frozen=True)
class Plan:
    """What to do now: jobs to start with the GPUs they get, words for those that wait, and when to look again."""

    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)
    expired: tuple[str, ...] = ()
    next_at: float | None = None


class Gate(Protocol):
    """What may start by what it costs. It counts what it lets through."""

    def refusal(self, job: Workload) -> str | None:
        """Say why a job may have no host yet, or None."""

    def takes(self, job: Workload) -> None:
        """Count a job that starts."""

    @property
    def next_at(self) -> float | None:
        """When to look again at those that were refused."""


class Open:
    """No caps: everything may start."""

    next_at: float | None = None

    def refusal(self, job: Workload) -> str | None:
        return None

    def takes(self, job: Workload) -> None: ...


OPEN = Open()


@dataclass
class _Free:
    """What is left of a place while a plan is made."""

    place: Place
    slots: int
    cpus: float
    memory_bytes: int
    gpus: list[int]

    def take(self, needs: Needs) -> tuple[int, ...]:
        """Take what a job needs; return its GPUs."""
        self.slots -= 1
        self.cpus -= needs.cpus or 0
        self.memory_bytes -= needs.memory_bytes or 0
        taken, self.gpus = self.gpus[: needs.gpus], self.gpus[needs.gpus :]
        return tuple(taken)

    def missing(self, needs: Needs) -> str | None:
        """Say what a job still lacks, or None when it fits."""
        whole = self.place.capacity
        if self.slots <= 0:
            return f"a free slot: all {self.place.slots} are taken"
        if needs.cpus and needs.cpus > self.cpus + 1e-9:  # sums of fractions are not exact
            return f"{workload.cpus_words(needs.cpus)}: {max(0, self.cpus):g} of {whole.cpus or 0:g} are free"
        if needs.memory_bytes and needs.memory_bytes > self.memory_bytes:
            free, total = units.size(max(0, self.memory_bytes)), units.size(whole.memory_bytes or 0)
            return f"{units.size(needs.memory_bytes)} of memory: {free} of {total} are free"
        if needs.gpus > len(self.gpus):
            return f"{text.plural(needs.gpus, 'GPU')}: {len(self.gpus)} of {whole.gpus} are free"
        return None


def plan(jobs: Iterable[Workload], places: Mapping[str, Place], now: float, gate: Gate = OPEN) -> Plan:
    """Decide for all jobs of all projects. `now` is seconds since the epoch.

    A job that the gate refuses holds nobody up: the younger ones may cost less, or be somebody else's.
    """
    known = [job for job in jobs if job.service in places]
    free = {
        service: _free(place, [job for job in known if job.service == service]) for service, place in places.items()
    }
    in_setup = sum(job.state.is_setup for job in known)
    queued = in_line(known)
    expired = tuple(job.id for job in queued if _is_expired(job, now))
    moments = [job.deadline_at for job in queued if _has_deadline(job) and job.id not in expired]
    starts: dict[str, tuple[int, ...]] = {}
    waits: dict[str, str] = {}
    heads: dict[str, str] = {}
    for job in queued:
        if job.id in expired:
            continue
        if awaits_release(job):
            waits[job.id] = _release(job)
            continue
        due_at = due(job)
        if due_at > now:
            waits[job.id] = _next_try(job, due_at)
            moments.append(due_at)
            continue
        refusal = gate.refusal(job)
        if refusal is not None:
            waits[job.id] = refusal
            continue
        reason = _reason(job, free[job.service], in_setup, heads)
        if reason is not None:
            waits[job.id] = reason
            heads.setdefault(job.service, job.id)
            continue
        starts[job.id] = free[job.service].take(job.needs)
        gate.takes(job)
        in_setup += 1
    moments.append(gate.next_at)
    return Plan(starts, waits, expired, min((at for at in moments if at is not None), default=None))


def in_line(jobs: Iterable[Workload]) -> list[Workload]:
    """Return the queued jobs, the oldest submission first."""
    queued = [job for job in jobs if job.state is JobState.QUEUED and job.terminating_since is None]
    return sorted(queued, key=lambda job: (job.submitted_at, job.id))


def _free(place: Place, jobs: Sequence[Workload]) -> _Free:
    whole = place.capacity
    free = _Free(place, place.slots, whole.cpus or 0, whole.memory_bytes or 0, list(range(whole.gpus)))
    for job in jobs:
        if holds(job):
            free.take(Needs(job.needs.cpus, job.needs.memory_bytes))
            mine = gpu_indices(job)
            free.gpus = [index for index in free.gpus if index not in mine]
    return free


def holds(job: Workload) -> bool:
    """Tell whether a job has a slot and its share of the place."""
    waiting = (JobState.QUEUED, JobState.RETRYING)
    return not job.state.is_final and job.state not in waiting


def gpu_indices(job: Workload) -> tuple[int, ...]:
    """Return the numbers of the GPUs that were given to a job."""
    found = job.facts.get(GPUS, ())
    return tuple(int(str(index)) for index in found) if isinstance(found, list | tuple) else ()


def _reason(job: Workload, free: _Free, in_setup: int, heads: Mapping[str, str]) -> str | None:
    head = heads.get(job.service)
    if head is not None:
        return f"job {head}, which is before it in the line"
    if in_setup >= SETUP_PLACES:
        return f"the setup of other jobs: all {SETUP_PLACES} places are taken"
    return free.missing(job.needs)


def _has_deadline(job: Workload) -> bool:
    return job.deadline_at is not None and job.setup_attempt == 0 and job.recoveries == 0


def _is_expired(job: Workload, now: float) -> bool:
    """A deadline is for the first start of a submission; a later try has met it."""
    return _has_deadline(job) and (job.deadline_at or 0) <= now


def due(job: Workload) -> float:
    """Return when a job may start: 0 at once, else a moment in the window of its retry.

    The same job and try always give the same moment, so a restarted daemon keeps to it.
    """
    if job.retry is None:
        return 0.0
    share = zlib.crc32(f"{job.id}:{job.retry.attempt}".encode()) / 2**32
    return job.retry.earliest_at + share * (job.retry.latest_at - job.retry.earliest_at)


def awaits_release(job: Workload) -> bool:
    """Tell whether a job waits until its last host is confirmed to be gone; that uses up no try."""
    return job.state is JobState.QUEUED and job.host is not None and job.host.is_awaiting_release


def _release(job: Workload) -> str:
    """Say what it waits for. Who waits so holds nobody up."""
    return "the release of its last host" + (f": {job.cleanup_error}" if job.cleanup_error else "")


def _next_try(job: Workload, due_at: float) -> str:
    assert job.retry is not None
    tries = f"try {job.retry.attempt + 1} of {SETUP_ATTEMPTS}"
    cause = f" ({job.retry.cause})" if job.retry.cause in KNOWN_CAUSES else ""
    return f"{tries} at {rfc3339(due_at)[:19]}Z{cause}, after: {job.retry.message}"


def retry(job: Workload, *, cause: str, message: str, now: float) -> Retry | None:
    """Return when a job whose setup failed may try again, or None when its tries are used up."""
    if job.setup_attempt >= SETUP_ATTEMPTS:
        return None
    return pause(job.setup_attempt, message, now, cause=cause)


def pause(count: int, message: str, now: float, *, cause: str = "other") -> Retry:
    """Return the window of the next try after so many that failed: 10 s, doubling to 10 min, a fifth either way."""
    pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(max(0, count - 1), 10))
    window = (now + pause_s * (1 - SPREAD), now + pause_s * (1 + SPREAD))
    return Retry(count, *window, cause=cause, message=message)


def check_fits(needs: Needs, place: Place) -> None:
    """Raise Refused when a job is larger than the whole place, with both numbers."""
    workload.check_fits(needs, place.capacity)
