"""aj status: where a job stands and what happened to it; without an id the newest jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import managed, recent, remote
from aj.cli.declare import Option, Word, filled
from aj.cli.remote import Remote
from aj.view import job as view
from aj.view.scope import Scope
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.wire.messages import JobAnswer

NEWEST = 20


@dataclass(frozen=True)
class Options:
    """Which job."""

    job: Annotated[str | None, Word("ID", "the job, its ticket or its name", filled, values="job")] = None
    workspace: Annotated[
        str | None, Option("--ws", "where to look for a job that is not ours", "NAME", filled, values="workspace")
    ] = None
    watch: Annotated[bool, Option("--watch", "again at every change, until the job has ended")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound, UserError when several fit, AuthError."""
    _check_watch(opts, ctx)
    if opts.job is None:
        items, truncated = recent.find(ctx, limit=NEWEST)
        ctx.screen.show(view.jobs(items, truncated=truncated, scope=Scope(ctx.key)))
        return 0
    what = remote.find(ctx, opts.job, opts.workspace)
    if isinstance(what, Remote):
        answer = ctx.client.cloud_jobs.show(what.workspace, what.name)
        ctx.tell_warnings(answer.warnings, code="azure")
        ctx.screen.show(view.remote(answer.job, what.ticket))
        if answer.by_hand:
            ctx.screen.note(f"by hand: `{answer.by_hand}`")
        return 0
    if what.job is None:
        assert what.ticket is not None, "a name that is found names something"
        ctx.screen.show(view.promised(what.ticket))
        for words in managed.commands(what.ticket):
            ctx.screen.note(f"managed by {what.ticket.service}: `{words}`")
        return 0
    if opts.watch:
        return _watch(what.job.id, ctx)
    own = ctx.client.jobs.show(what.job.id)
    ctx.tell_warnings(own.warnings)
    _show(own, ctx)
    return 0


def _show(answer: JobAnswer, ctx: Context) -> None:
    ctx.screen.show(view.status(answer, ctx.clock.now(), verbose=ctx.found.verbose, moment=ctx.screen.moment))


def _check_watch(opts: Options, ctx: Context) -> None:
    """Refuse to watch what does not change, and in a format that is one document. Raises OptionError."""
    if not opts.watch:
        return
    if opts.job is None:
        raise OptionError("`--watch` needs one job", hint="`aj status ID --watch`; `aj wait ID...` for several")
    if ctx.screen.format is not Format.TABLE:
        raise OptionError("`--watch` is for a person", hint="`aj wait ID --json` prints a record for each change")


def _watch(job_id: str, ctx: Context) -> int:
    """Print the status at every change. Ctrl-C ends the watching alone."""
    from aj.cli import leaving

    with leaving.telling(leaving.goes_on(ctx, (job_id,))):
        for at, answer in enumerate(ctx.client.jobs.wait(job_id)):
            if at:
                ctx.screen.line("")
            _show(answer, ctx)
    return 0
