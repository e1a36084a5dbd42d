"""aj queue list: tickets of this project or of all, read from their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import text
from aj.base.noun import dataclass
from aj.cli.declare import Option, filled, whole
from aj.store import tickets
from aj.view import queue as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.ticket import Ticket


@dataclass(frozen=True)
class Options:
    """Which tickets."""

    every: Annotated[bool, Option("--all", "of every project")] = False
    state: Annotated[
        tuple[str, ...],
        Option(
            "-s --state",
            "in this state or with this outcome",
            "STATE",
            filled,
            repeats=True,
            values="ticket-state",
            also="--status",
        ),
    ] = ()
    limit: Annotated[int, Option("-n --limit", "how many at most; 0 for all (200)", "N", whole())] = 200


def run(opts: Options, ctx: Context) -> int:
    """Print the list, oldest first. Needs no daemon and changes nothing."""
    keys = tickets.keys(ctx.layout) if opts.every else [ctx.key]
    owners: dict[str, str | None] = {}
    found: list[Ticket] = []
    for key in keys:
        look = tickets.scan(ctx.layout, key)
        for warning in look.warnings:
            ctx.screen.warn(warning, code="damaged-ticket")
        owners |= {ticket.ticket: _project(ctx, key) for ticket in look.tickets}
        found += look.tickets
    if opts.every:
        found.sort(key=lambda ticket: (ticket.created_at, ticket.sequence))
    shown, left_out = tickets.chosen(found, opts.state, opts.limit)
    ctx.screen.show(
        view.tickets(
            [(ticket, owners[ticket.ticket]) for ticket in shown],
            with_project=opts.every,
            left_out=left_out,
            scope=None if opts.every else ctx.key,
        )
    )
    others = _others(opts, ctx) if not shown and not opts.every else 0
    if others:
        ctx.screen.note(f"{text.plural(others, 'other project has', 'other projects have')} some: `--all`")
    return 0


def _others(opts: Options, ctx: Context) -> int:
    """Count the other projects that have what was asked for."""
    keys = [key for key in tickets.keys(ctx.layout) if key != ctx.key]
    return sum(bool(tickets.chosen(tickets.scan(ctx.layout, key).tickets, opts.state, 1)[0]) for key in keys)


def _project(ctx: Context, key: str) -> str | None:
    """Name the project of a queue; one whose folder is gone is marked."""
    from pathlib import Path

    path = tickets.project_path(ctx.layout, key)
    if path is None:
        return None if key == ctx.key else f"{key} (unknown)"
    return path if Path(path).is_dir() else f"{path} (missing)"
