"""What a word names: a job of this machine or a ticket, by id, ticket, remote name or display name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aj.base.errors import NotFound, UserError
from aj.cli import managed
from aj.model import names
from aj.model.record import RecordState
from aj.model.ticket import Outcome, TicketState
from aj.store import jobs, journal, tickets

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.client.jobs import Found
    from aj.model.ticket import Ticket


def find(ctx: Context, word: str) -> Found:
    """Find it by asking the daemon. Raises NotFound, UserError listing them when several fit."""
    from aj.client.jobs import Found
    from aj.client.queue import named

    job_id = named(word, "id").removeprefix("q-")
    try:
        return Found(job=ctx.client.jobs.show(job_id).workload)  # an id needs no list
    except (NotFound, UserError):
        return _promised(ctx, word)


def _promised(ctx: Context, word: str) -> Found:
    """Find it among what the daemon shows, then among submissions that are over and of which nobody else tells."""
    try:
        return _there(ctx, word, lambda: ctx.client.jobs.find(word))
    except NotFound:
        found = managed.find(ctx, word)
        if found is None:
            raise
        return found


def ticket(ctx: Context, word: str) -> str:
    """Return the ticket that a word means: its name, its id, or the begin of either. Raises UserError for several."""
    name = word if tickets.is_name(word) else tickets.name_of(word)
    if tickets.is_name(name) and tickets.key_of(ctx.layout, name, ctx.key) is not None:
        return name
    there = [one for key in tickets.keys(ctx.layout) for one in tickets.scan(ctx.layout, key).tickets]
    fitting = sorted(one.ticket for one in there if names.is_begin(word, one.id))
    if len(fitting) > 1:
        raise UserError(
            f"`{word}` names {len(fitting)} tickets: {', '.join(fitting)}",
            code="ambiguous",
            hint="use one of these tickets",
            details={"ids": fitting},
        )
    return fitting[0] if fitting else word


def _there(ctx: Context, word: str, look: Callable[[], Found]) -> Found:
    """Return what is found, unless it is a job of this machine of which only the submission is left.

    Raises NotFound saying that it was deleted, or that there is nothing.
    """
    try:
        found = look()
    except NotFound:
        job_id = word.removeprefix("q-")
        if _was_here(ctx, job_id):
            raise _deleted(job_id) from None
        raise
    promised = found.ticket
    is_done = found.job is None and promised is not None and promised.state is TicketState.COMPLETED
    if is_done and promised is not None and _is_local(promised.service):
        raise _deleted(found.id)
    return found


def _is_local(service: str) -> bool:
    from aj.backend import registry  # most jobs are there

    return service in registry.ENTRIES and registry.traits(service).is_local


def _was_here(ctx: Context, job_id: str) -> bool:
    """Whether the journal knows it as a job of this machine."""
    found = (journal.last(ctx.layout, key, [job_id]).get(job_id) for key in journal.keys(ctx.layout))
    return any(one and one.state is RecordState.SUBMITTED and _is_local(one.service) for one in found)


def no_job(word: str, ticket: Ticket | None, *, yet: str = "is no job yet") -> tuple[str, str]:
    """Say why a submission is no job, and what to do: it may wait still, or never become one."""
    name = ticket.ticket if ticket else word
    show = f"`aj queue show {name}`"
    if ticket is None or ticket.state not in (TicketState.FAILED, TicketState.CANCELED):
        return f"{word} {yet}", show
    if ticket.state is TicketState.CANCELED:
        return f"{word} was canceled before it became a job", f"{show}, `aj queue retry {name}`"
    if ticket.outcome is Outcome.UNKNOWN:
        return f"nobody knows whether {word} became a job", f"`aj queue reconcile {name}` finds out"
    why = f": {ticket.error.message}" if ticket.error else ""
    return f"{word} was refused and never became a job{why}", f"{show}; mended, `aj queue retry {name}`"


def _deleted(job_id: str) -> NotFound:
    return NotFound(
        f"job {job_id} was deleted with its logs and files",
        code="deleted",
        hint="its submission is in `aj list`",
        details={"id": job_id},
    )


def on_disk(ctx: Context, word: str) -> str:
    """Return the id of a job of this machine, without a daemon. Raises NotFound, UserError."""
    if not word:
        raise UserError("an empty id names nothing", code="empty-id")
    from aj.client.jobs import choose

    job_id = word.removeprefix("q-")
    if jobs.exists(ctx.layout, job_id):
        return job_id
    known = jobs.listing(ctx.layout, lambda words: ctx.screen.warn(words, code="damaged-record"))
    promised = [ticket for key in tickets.keys(ctx.layout) for ticket in tickets.scan(ctx.layout, key).tickets]
    found = _there(ctx, word, lambda: choose(word, known, promised))
    if found.job is None:
        words, hint = no_job(word, found.ticket, yet="is no job of this machine yet")
        raise NotFound(words, code="no-such-job", hint=hint)
    return found.id
