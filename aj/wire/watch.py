"""What crosses the socket about watches. Of ways that may hold a secret only what is fit for eyes comes back."""

from __future__ import annotations

from dataclasses import field

from aj.base.noun import dataclass
from aj.model.watch import Watch


@dataclass(frozen=True)
class WatchWish:
    """Watch this job of the caller's project. `ways` are as they were typed; `ahead`: it is only being submitted."""

    id: str
    name: str
    handle: str | None = None
    ways: tuple[str, ...] = field(default=(), repr=False)
    ahead: bool = False


@dataclass(frozen=True)
class WatchRow:
    """A watch as it is told. `problem` is why it cannot be looked at, else why the last notice did not arrive."""

    id: str
    project: str
    name: str
    state: str | None
    is_over: bool
    added_at: str
    changed_at: str | None
    ways: tuple[str, ...] = ()
    delivery: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class WatchList:
    """Watches, the oldest first."""

    rows: tuple[WatchRow, ...]


@dataclass(frozen=True)
class WatchDone:
    """What an action did: `ok`, or `noop` with why."""

    status: str
    row: WatchRow | None = None
    detail: str | None = None


def row_of(watch: Watch) -> WatchRow:
    """Return a watch as it is told."""
    return WatchRow(
        watch.id,
        watch.project,
        watch.name,
        watch.state,
        watch.is_over,
        watch.added_at,
        watch.changed_at,
        tuple(str(way) for way in watch.ways),
        watch.delivery.value if watch.delivery else None,
        watch.problem or watch.refusal,
    )
