"""aj status: where a job stands and what happened to it; without an id the newest jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import managed, recent, remote
from aj.cli.declare import Option, Word, filled
from aj.cli.remote import Remote
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context

NEWEST = 20


@dataclass(frozen=True)
class Options:
    """Which job."""

    job: Annotated[str | None, Word("ID", "the job, its ticket or its name", filled, values="job")] = None
    workspace: Annotated[
        str | None, Option("--ws", "where to look for a job that is not ours", "NAME", filled, values="workspace")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound, UserError when several fit, AuthError."""
    if opts.job is None:
        items, truncated = recent.find(ctx, limit=NEWEST)
        ctx.screen.show(view.jobs(items, truncated=truncated, scope=ctx.key))
        return 0
    what = remote.find(ctx, opts.job, opts.workspace)
    if isinstance(what, Remote):
        answer = ctx.client.cloud_jobs.show(what.workspace, what.name)
        ctx.tell_warnings(answer.warnings, code="azure")
        ctx.screen.show(view.remote(answer.job, what.ticket))
        return 0
    if what.job is None:
        assert what.ticket is not None, "a name that is found names something"
        ctx.screen.show(view.promised(what.ticket))
        for words in managed.commands(what.ticket):
            ctx.screen.note(f"managed by {what.ticket.service}: `{words}`")
        return 0
    own = ctx.client.jobs.show(what.job.id)
    ctx.tell_warnings(own.warnings)
    ctx.screen.show(view.status(own, ctx.clock.now(), verbose=ctx.found.verbose, moment=ctx.screen.moment))
    return 0
