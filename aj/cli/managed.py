"""Jobs at a place that cannot be asked about them: what was submitted is known here, the rest its own program tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.backend import registry
from aj.base.errors import NotFound, OptionError, UserError
from aj.model import handle
from aj.store import tickets

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.submit import Manner
    from aj.client.jobs import Found
    from aj.model.job import JobSpec
    from aj.model.ticket import Ticket

VERBS = ("status", "logs", "cancel")


def commands(ticket: Ticket) -> tuple[str, ...]:
    """Return the commands of the program that manages a submitted job; none where the place itself answers."""
    if ticket.result is None or ticket.service not in registry.ENTRIES or registry.traits(ticket.service).answers:
        return ()
    from aj.backend.amlt.commands import command

    place = handle.parse(ticket.result.handle).place
    return tuple(command(verb, place, ticket.name) for verb in VERBS)


def find(ctx: Context, word: str) -> Found | None:
    """Find a submission whose job its place does not tell of; None when the word names another or none."""
    from aj.client.jobs import Found, choose

    there = [one for key in tickets.keys(ctx.layout) for one in tickets.scan(ctx.layout, key).tickets]
    try:
        promised = choose(word, [], there).ticket
    except (NotFound, UserError):
        return None  # who asks next says so better
    return Found(ticket=promised) if promised and commands(promised) else None


def refuse(ticket: Ticket) -> None:
    """Raise UserError with the commands of the program that manages a job, where the place cannot be asked."""
    if found := commands(ticket):
        raise UserError(
            f"{ticket.id} is managed by {ticket.service}, which cannot be asked by aj",
            hint=", ".join(f"`{words}`" for words in found),
            code="managed-elsewhere",
            details={"id": ticket.id, "commands": found},
        )


def refuse_waiting(spec: JobSpec, opts: Manner) -> None:
    """Refuse to wait for the end of a job of which nobody will tell. Raises OptionError before it is submitted."""
    if (opts.wait or opts.follow) and not registry.traits(spec.service).answers:
        word = "--follow" if opts.follow else "--wait"
        raise OptionError(
            f"`{word}`: {spec.service} does not tell when a job has ended",
            hint=f"leave it out; then `amlt status {spec.experiment or 'EXPERIMENT'}`",
            code="managed-elsewhere",
        )
