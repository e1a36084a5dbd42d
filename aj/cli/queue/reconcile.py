"""aj queue reconcile: find out what became of submissions whose outcome is unknown; nothing is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import gravest
from aj.base.noun import dataclass
from aj.cli import named, several
from aj.cli.declare import Word, filled
from aj.model.ticket import Outcome
from aj.store import tickets
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item

UNKNOWN = 6


@dataclass(frozen=True)
class Options:
    """Which tickets."""

    tickets: Annotated[
        tuple[str, ...], Word("TICKET", "the tickets; without one all unknown ones", filled, many=True, values="ticket")
    ] = ()


def run(opts: Options, ctx: Context) -> int:
    """Ask where each was sent; 6 when any stays unknown. Raises NotFound, OutcomeUnknown."""
    names = opts.tickets or _unknown(ctx)
    outcome = several.each(ctx, names, lambda name: _reconcile(ctx, name))
    ctx.screen.show(action.done("reconcile", outcome.items, outcome.status))
    if not names:
        ctx.screen.note("no ticket has an unknown outcome")
    still = any(item["status"] == "unknown" for item in outcome.items)
    return gravest([outcome.code, UNKNOWN if still else 0])


def _unknown(ctx: Context) -> tuple[str, ...]:
    found = tickets.scan(ctx.layout, ctx.key).tickets
    return tuple(ticket.ticket for ticket in found if ticket.outcome is Outcome.UNKNOWN)


def _reconcile(ctx: Context, name: str) -> Item:
    answer = ctx.client.queue.reconcile(named.ticket(ctx, name))
    ctx.tell_warnings(answer.warnings)
    ticket = answer.ticket
    status = "unknown" if ticket.outcome is Outcome.UNKNOWN else "ok"
    return action.item(
        ticket.ticket, status=status, state=ticket.outcome and ticket.outcome.value, detail=ticket.detail
    )
