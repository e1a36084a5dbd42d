"""aj queue show: one ticket with its times, outcome and error, read from its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import named
from aj.cli.declare import Word, filled
from aj.store import tickets
from aj.view import queue as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.ticket import Ticket


@dataclass(frozen=True)
class Options:
    """Which ticket."""

    ticket: Annotated[str, Word("TICKET", "the ticket, or its id", filled, values="ticket")]


def run(opts: Options, ctx: Context) -> int:
    """Print the ticket. Raises NotFound."""
    key, ticket = find(ctx, opts.ticket)
    ctx.screen.show(view.entry(ticket, tickets.project_path(ctx.layout, key)))
    return 0


def find(ctx: Context, word: str) -> tuple[str, Ticket]:
    """Find a ticket by its name or its id, in this project first, then in all. Raises NotFound."""
    name = named.ticket(ctx, word)
    key = tickets.key_of(ctx.layout, name, ctx.key)
    if key is None:
        raise tickets.no_such(word)
    look = tickets.scan(ctx.layout, key)
    for warning in look.warnings:
        ctx.screen.warn(warning, code="damaged-ticket")
    found = next((ticket for ticket in look.tickets if ticket.ticket == name), None)
    if found is None:
        raise tickets.no_such(word)
    return key, found
