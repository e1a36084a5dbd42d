"""aj queue retry: submit a failed ticket once more, as a new ticket with the same request and code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import named
from aj.cli.declare import Option, Word, filled
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which ticket."""

    ticket: Annotated[str, Word("TICKET", "the failed ticket", filled, values="ticket")]
    force: Annotated[bool, Option("--force", "also when its outcome is unknown: the job may then exist twice")] = False


def run(opts: Options, ctx: Context) -> int:
    """Retry it. Raises NotFound, Refused, OutcomeUnknown without `--force`."""
    answer = ctx.client.queue.retry(named.ticket(ctx, opts.ticket), force=opts.force)
    ctx.tell_warnings(answer.warnings)
    ticket = answer.ticket
    item = action.item(ticket.ticket, status="ok", state=ticket.state.value, detail=f"retry of {ticket.retried_from}")
    ctx.screen.show(action.done("retry", [item], "ok"))
    return 0
