"""aj status: where a job stands and what happened to it; of several a line each, without an id the newest jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import managed, recent, remote, several
from aj.cli.declare import Option, Word, filled
from aj.cli.remote import Remote
from aj.view import action
from aj.view import job as view
from aj.view.scope import Scope
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.client.jobs import Found
    from aj.view.document import Document, Item
    from aj.wire.messages import JobAnswer

NEWEST = 20


@dataclass(frozen=True)
class Options:
    """Which jobs."""

    jobs: Annotated[
        tuple[str, ...],
        Word("ID", "the job, its ticket or its name; several are told in a line each", filled, many=True, values="job"),
    ] = ()
    workspace: Annotated[
        str | None, Option("--ws", "where to look for a job that is not ours", "NAME", filled, values="workspace")
    ] = None
    watch: Annotated[bool, Option("--watch", "again at every change, until the job has ended")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound, UserError when several fit, AuthError."""
    _check_watch(opts, ctx)
    if not opts.jobs:
        items, truncated = recent.find(ctx, limit=NEWEST)
        ctx.screen.show(view.jobs(items, truncated=truncated, scope=Scope(ctx.key)))
        return 0
    if len(opts.jobs) > 1:
        return _several(opts, ctx)
    what = remote.find(ctx, opts.jobs[0], opts.workspace)
    if opts.watch and not isinstance(what, Remote) and what.job is not None:
        return _watch(what.job.id, ctx)
    ctx.screen.show(_document(what, ctx))
    for words in _elsewhere(what):
        ctx.screen.note(words)
    return 0


def _several(opts: Options, ctx: Context) -> int:
    """Print a line of each that is found; what is not found is told, and gives the exit code."""
    found: list[Document] = []

    def look(word: str) -> Item:
        found.append(_document(remote.find(ctx, word, opts.workspace), ctx))
        return action.item(word, status="ok", state=None)

    outcome = several.each(ctx, opts.jobs, look)
    failures = [item for item in outcome.items if item["error"]]
    ctx.screen.show(view.statuses(found, failures))
    return outcome.code


def _document(what: Found | Remote, ctx: Context) -> Document:
    """Ask where it stands: a job elsewhere, a submission that is no job of ours, or a job here."""
    if isinstance(what, Remote):
        there = ctx.client.cloud_jobs.show(what.workspace, what.name)
        ctx.tell_warnings(there.warnings, code="azure")
        if there.by_hand:
            ctx.screen.note(f"by hand: `{there.by_hand}`")
        return view.remote(there.job, what.ticket)
    if what.job is None:
        assert what.ticket is not None, "a name that is found names something"
        return view.promised(what.ticket)
    own = ctx.client.jobs.show(what.job.id)
    ctx.tell_warnings(own.warnings)
    return _of(own, ctx)


def _elsewhere(what: Found | Remote) -> list[str]:
    """Say who else tells of a submission that is no job of ours."""
    ticket = None if isinstance(what, Remote) or what.job else what.ticket
    return [f"managed by {ticket.service}: `{words}`" for words in managed.commands(ticket)] if ticket else []


def _of(answer: JobAnswer, ctx: Context) -> Document:
    return view.status(answer, ctx.clock.now(), verbose=ctx.found.verbose, moment=ctx.screen.moment)


def _check_watch(opts: Options, ctx: Context) -> None:
    """Refuse to watch what does not change, and in a format that is one document. Raises OptionError."""
    if not opts.watch:
        return
    if len(opts.jobs) != 1:
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
            ctx.screen.show(_of(answer, ctx))
    return 0
