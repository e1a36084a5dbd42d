"""What a word names: a job of this machine or a ticket, by id, ticket, remote name or display name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.errors import NotFound, UserError
from aj.client.jobs import Found, choose
from aj.store import jobs, tickets

if TYPE_CHECKING:
    from aj.cli.context import Context


def find(ctx: Context, word: str) -> Found:
    """Find it by asking the daemon. Raises NotFound, UserError listing them when several fit."""
    from aj.client.queue import named

    job_id = named(word, "id").removeprefix("q-")
    try:
        return Found(job=ctx.client.jobs.show(job_id).workload)  # an id needs no list
    except (NotFound, UserError):
        return ctx.client.jobs.find(word)


def on_disk(ctx: Context, word: str) -> str:
    """Return the id of a job of this machine, without a daemon. Raises NotFound, UserError."""
    if not word:
        raise UserError("an empty id names nothing", code="empty-id")
    job_id = word.removeprefix("q-")
    if jobs.exists(ctx.layout, job_id):
        return job_id
    known = jobs.listing(ctx.layout, lambda words: ctx.screen.warn(words, code="damaged-record"))
    promised = [ticket for key in tickets.keys(ctx.layout) for ticket in tickets.scan(ctx.layout, key).tickets]
    found = choose(word, known, promised)
    if found.job is None:
        raise NotFound(
            f"{word} is no job of this machine yet", code="no-such-job", hint=f"`aj queue show q-{found.id}`"
        )
    return found.id
