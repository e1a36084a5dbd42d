"""What a word names that is to be watched: a job of this machine, a ticket, a job elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base.errors import AjError
from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.remote import Remote
from aj.model import names
from aj.model.handle import Handle
from aj.model.watch import Delivery
from aj.store import lock, watches

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.wire.watch import WatchRow


@dataclass(frozen=True)
class Watched:
    """A job to watch: `handle` names one that no ticket and no journal of ours knows."""

    id: str
    name: str
    handle: str | None = None


def find(ctx: Context, word: str, workspace: str | None) -> Watched:
    """Find a job. Raises NotFound, UserError listing them when several fit, AuthError when only Azure could tell."""
    found = remote.find(ctx, word, workspace)
    if not isinstance(found, Remote):
        name = found.job.name if found.job else found.ticket.name if found.ticket else found.id
        return Watched(found.id, name)
    if found.is_recorded:
        return Watched(found.id, found.name)
    job = found.job or ctx.client.cloud_jobs.show(found.workspace, found.name).job
    return Watched(found.id, job.name, str(Handle(job.service, job.workspace, job.name)))


def known_as(ctx: Context, word: str, known: Sequence[WatchRow], workspace: str | None) -> str:
    """Return the id by which a word's job is watched; the word itself when it names none that is."""
    plain = word.removeprefix("q-")
    for row in known:
        if plain in (row.id, row.name):
            return row.id
    fitting = [row.id for row in known if names.is_begin(plain, row.id)]
    if len(fitting) == 1:
        return fitting[0]
    try:
        return find(ctx, word, workspace).id
    except AjError:
        return word


def on_disk(ctx: Context, *, every: bool) -> list[WatchRow]:
    """Read the watches of this project or of all without asking anybody; damaged files are told.

    A notice that was on its way when its daemon ended is one of which nobody is sure.
    """
    from aj.wire.watch import row_of

    found = watches.each(ctx.layout, lambda words: ctx.screen.warn(words, code="damaged-watch"))
    mine = [watch for watch in found if every or watch.project == ctx.key]
    leaving = {one.project for one in mine if one.leaving}
    lost = {key for key in leaving if lock.living_holder(ctx.layout.ownership(key)) is None}
    told = [replace(one, delivery=Delivery.UNSURE) if one.leaving and one.project in lost else one for one in mine]
    return [row_of(watch) for watch in sorted(told, key=lambda watch: (watch.added_at, watch.id))]
