"""Totals over many jobs: how many stand where, how long they waited, what they used; by experiment, compute, user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aj.base.noun import dataclass
from aj.model.state import JobState

NOBODY = "(none)"  # the group of what has no experiment, compute or user
GROUPS = ("experiment", "compute", "user")
_WAITING = frozenset({JobState.QUEUED, JobState.RETRYING, JobState.RECOVERING})
_FAILED = frozenset({JobState.ERRORED, JobState.FAILED, JobState.INVALID})


@dataclass(frozen=True)
class Sample:
    """What is counted of one job. `gpu_s` are GPU seconds, None when nobody tells how many GPUs it has.

    `queued_s` is how long it waited for its start, None when it has not started.
    """

    state: JobState | None
    experiment: str | None = None
    compute: str | None = None
    user: str | None = None
    gpu_s: float | None = None
    queued_s: float | None = None


@dataclass(frozen=True)
class Total:
    """Sums. Jobs of unknown state count in `total` alone; `success_rate` is over completed and failed ones.

    `gpu_hours` are those of the `gpu_jobs` of which they are known; None when that is none.
    """

    total: int = 0
    active: int = 0
    queued: int = 0
    completed: int = 0
    failed: int = 0
    canceled: int = 0
    success_rate: float | None = None
    gpu_hours: float | None = None
    gpu_jobs: int = 0
    median_queued_s: float | None = None


@dataclass(frozen=True)
class Part:
    """The total of one experiment, compute or user."""

    name: str
    total: Total


@dataclass(frozen=True)
class Tally:
    """The total of all, and of each group: `experiment`, `compute`, `user`; the largest first."""

    overview: Total
    groups: Mapping[str, tuple[Part, ...]]


def of(samples: Sequence[Sample]) -> Tally:
    """Count jobs."""
    return Tally(_total(samples), {group: _parts(samples, group) for group in GROUPS})


def _parts(samples: Iterable[Sample], group: str) -> tuple[Part, ...]:
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(getattr(sample, group) or NOBODY, []).append(sample)
    parts = (Part(name, _total(of_it)) for name, of_it in found.items())
    return tuple(sorted(parts, key=lambda part: (-part.total.total, part.name)))


def _total(samples: Sequence[Sample]) -> Total:
    states = [sample.state for sample in samples]
    completed = states.count(JobState.COMPLETED)
    failed = sum(state in _FAILED for state in states)
    queued = sum(state in _WAITING for state in states)
    used = [sample.gpu_s for sample in samples if sample.gpu_s is not None]
    waited = [sample.queued_s for sample in samples if sample.queued_s is not None]
    return Total(
        total=len(samples),
        active=sum(state is not None and not state.is_final for state in states) - queued,
        queued=queued,
        completed=completed,
        failed=failed,
        canceled=states.count(JobState.TERMINATED),
        success_rate=round(completed / (completed + failed), 4) if completed + failed else None,
        gpu_hours=round(sum(used) / 3600, 3) if used else None,
        gpu_jobs=len(used),
        median_queued_s=round(_median(waited), 3) if waited else None,
    )


def _median(values: Sequence[float]) -> float:
    """The one in the middle; without one, what lies between the two there."""
    ranked = sorted(values)
    half = len(ranked) // 2
    return ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2
