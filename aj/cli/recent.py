"""Jobs of this machine and submissions to other places together, the newest first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from aj.backend import registry
from aj.model.record import RecordState
from aj.model.state import JobState
from aj.store import journal
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.record import Record
    from aj.view.document import Item

SHOWN = (RecordState.SUBMITTED, RecordState.UNKNOWN)  # of which something may run somewhere


def find(
    ctx: Context,
    *,
    limit: int,
    every: bool = False,
    states: Sequence[str] = (),
    fits: Callable[[Item], bool] = lambda item: True,
) -> tuple[list[Item], bool]:
    """Return the newest of a project or of all (0: without a limit), and whether there are more.

    `states` are those of jobs, and `submitted` and `unknown` of submissions whose job runs elsewhere.
    """
    words = set(states)
    wanted = tuple(state for state in JobState if state.value in words)
    found = ctx.client.jobs.list(all_projects=every, states=wanted, limit=0) if wanted or not words else None
    now = ctx.clock.now()
    driven = [view.record(job, now) for job in found.jobs] if found else []
    if found:
        ctx.tell_warnings(found.warnings)
    sent = (view.recorded(record) for record in _elsewhere(ctx, every) if not words or record.state.value in words)
    merged = heapq.merge(driven, sent, key=lambda item: str(item["submittedAt"]), reverse=True)
    fitting = (item for item in merged if fits(item))
    items = list(itertools.islice(fitting, limit + 1 if limit else None))
    return items[: limit or None], bool(limit) and len(items) > limit


def _elsewhere(ctx: Context, every: bool) -> Iterable[Record]:
    """The submissions whose job no engine of ours drives, the newest first."""

    def damaged(where: str) -> None:
        ctx.screen.warn(f"{where} is no record and is passed over", code="damaged-record")

    keys = journal.keys(ctx.layout) if every else [ctx.key]
    of_each = (journal.newest(ctx.layout, key, damaged) for key in keys)
    merged = heapq.merge(*of_each, key=lambda record: record.ts, reverse=True)
    return (record for record in merged if record.state in SHOWN and not _is_driven(record.service))


def _is_driven(service: str) -> bool:
    entry = registry.ENTRIES.get(service)
    return entry is not None and entry.traits.driven
