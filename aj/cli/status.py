"""aj status: where a job stands and what happened to it; without an id the newest jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from aj.cli import named
from aj.cli.declare import Word, filled
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context

NEWEST = 20


@dataclass(frozen=True)
class Options:
    """Which job."""

    job: Annotated[str | None, Word("ID", "the job, its ticket or its name", filled, values="job")] = None


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound, UserError when several fit."""
    if opts.job is None:
        found = ctx.client.jobs.list(limit=NEWEST)
        ctx.tell_warnings(found.warnings)
        ctx.screen.show(view.jobs(found.jobs, ctx.clock.now(), truncated=found.truncated, scope=ctx.key))
        return 0
    what = named.find(ctx, opts.job)
    if what.job is None:
        assert what.ticket is not None, "a name that is found names something"
        ctx.screen.show(view.promised(what.ticket))
        return 0
    answer = ctx.client.jobs.show(what.job.id)
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.status(answer, ctx.clock.now(), verbose=ctx.found.verbose, moment=ctx.screen.moment))
    return 0
