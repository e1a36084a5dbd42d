"""aj job delete: remove an ended job with its logs and the files it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.cli import remote, several
from aj.cli.declare import Option, Word, filled
from aj.cli.remote import Remote
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Which jobs."""

    jobs: Annotated[tuple[str, ...], Word("ID", "the jobs", filled, many=True, values="job")]
    yes: Annotated[bool, Option("-y --yes", "do not ask")] = False
    workspace: Annotated[
        str | None, Option("--ws", "where to look for jobs that are not ours", "NAME", filled, values="workspace")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Delete them. Raises NotFound, Refused for a job that has not ended or without a yes."""
    if len(opts.jobs) == 1:
        remote.find(ctx, opts.jobs[0], opts.workspace)  # nobody is asked about what is not there
    what = opts.jobs[0] if len(opts.jobs) == 1 else f"{len(opts.jobs)} jobs"
    ctx.screen.confirm(f"delete {what} with logs and files", yes=opts.yes)
    outcome = several.each(ctx, opts.jobs, lambda word: _delete(ctx, word, opts.workspace))
    ctx.screen.show(action.done("delete", outcome.items, outcome.status))
    return outcome.code


def _delete(ctx: Context, word: str, workspace: str | None) -> Item:
    found = remote.find(ctx, word, workspace)
    if isinstance(found, Remote):
        gone = ctx.client.cloud_jobs.delete(found.workspace, found.name)
        was_there = gone.status != "noop"
        detail = None if was_there else "it was gone already"
        return action.item(found.id, status="ok" if was_there else "noop", state=None, detail=detail)
    if found.job is None:
        raise Refused(f"{word} is no job of this machine", hint=f"`aj queue show q-{found.id}`", code="not-a-job")
    done = ctx.client.jobs.delete(found.job.id)
    ctx.tell_warnings(done.warnings)
    status = "noop" if done.status == "noop" else "ok"
    return action.item(found.job.id, status=status, state=None, detail=done.detail)
