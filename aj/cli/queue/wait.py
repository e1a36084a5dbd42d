"""aj queue wait: wait until tickets are submitted, or have failed to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import AjError, gravest
from aj.base.noun import dataclass
from aj.cli import named, several
from aj.cli.declare import Option, Word, duration, filled
from aj.model.ticket import TicketState
from aj.view import queue as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.ticket import Ticket


@dataclass(frozen=True)
class Options:
    """Which tickets, and how long."""

    tickets: Annotated[tuple[str, ...], Word("TICKET", "the tickets", filled, many=True, values="ticket")]
    timeout_s: Annotated[
        float | None, Option("--timeout", "give up after this long; 0 looks once", "DURATION", duration)
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Print the tickets as they ended: 0 all submitted, 1 any failed or canceled. Raises NotFound, TimedOut."""
    limit = None if opts.timeout_s is None else ctx.clock.monotonic() + opts.timeout_s
    found: list[Ticket] = []
    codes = [0]
    for name in opts.tickets:
        left_s = None if limit is None else max(0.0, limit - ctx.clock.monotonic())
        try:
            answer = ctx.client.queue.wait(named.ticket(ctx, name), timeout_s=left_s)
        except AjError as error:
            if len(opts.tickets) == 1:
                raise
            several.failed(ctx, name, error)
            codes.append(error.exit_code)
            continue
        ctx.tell_warnings(answer.warnings)
        found.append(answer.ticket)
        codes.append(0 if answer.ticket.state is TicketState.COMPLETED else 1)
    project = str(ctx.project.directory) if ctx.project else None
    ctx.screen.show(view.tickets([(ticket, project) for ticket in found]))
    return gravest(codes)
