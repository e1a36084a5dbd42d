"""aj watch remove: hear of a job no longer, by any name that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import watching
from aj.cli.declare import Option, Word, filled
from aj.view import watch as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which jobs."""

    jobs: Annotated[tuple[str, ...], Word("ID", "the jobs, their tickets or names", filled, many=True, values="job")]
    workspace: Annotated[
        str | None, Option("--ws", "where to look for jobs that are not ours", "NAME", filled, values="workspace")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Take the watches back; a job that is not watched is no failure."""
    known = ctx.client.watches.list().rows
    named = [watching.known_as(ctx, word, known, opts.workspace) for word in opts.jobs]
    done = [ctx.client.watches.remove(job_id) for job_id in named]
    for one in done:
        if one.detail:
            ctx.screen.note(one.detail)
    ctx.screen.show(view.done("unwatch", list(zip(named, done))))
    return 0
