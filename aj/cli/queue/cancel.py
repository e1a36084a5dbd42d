"""aj queue cancel: take waiting tickets out of the queue; after the answer they never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import named, several
from aj.cli.declare import Option, Word, filled
from aj.model.ticket import TicketState
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Which tickets."""

    tickets: Annotated[tuple[str, ...], Word("TICKET", "the tickets", filled, many=True, values="ticket")] = ()
    all_pending: Annotated[bool, Option("--all-pending", "all that wait in this project")] = False
    yes: Annotated[bool, Option("-y --yes", "do not ask before `--all-pending`")] = False


def run(opts: Options, ctx: Context) -> int:
    """Cancel them. Raises NotFound, Refused for a ticket that runs or has ended otherwise."""
    if bool(opts.tickets) == opts.all_pending:
        raise OptionError("name tickets, or all with `--all-pending`", hint="`aj queue list -s queued` shows them")
    names = opts.tickets or _pending(ctx, yes=opts.yes)
    outcome = several.each(ctx, names, lambda name: _cancel(ctx, name))
    ctx.screen.show(action.done("cancel", outcome.items, outcome.status))
    return outcome.code


def _pending(ctx: Context, *, yes: bool) -> tuple[str, ...]:
    found = ctx.client.queue.list(states=(TicketState.QUEUED,), limit=0).tickets
    if found:
        ctx.screen.confirm(f"cancel {len(found)} waiting", yes=yes)
    return tuple(ticket.ticket for ticket in found)


def _cancel(ctx: Context, name: str) -> Item:
    name = named.ticket(ctx, name)
    before = ctx.client.queue.show(name).ticket
    answer = ctx.client.queue.cancel(name)
    ctx.tell_warnings(answer.warnings)
    status = "noop" if before.state is TicketState.CANCELED else "ok"
    return action.item(answer.ticket.ticket, status=status, state=answer.ticket.state.value)
