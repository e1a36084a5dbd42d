"""aj exp list: the experiments of a workspace, each with how its jobs fared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.declare import Option, filled, whole
from aj.view import experiment as view
from aj.wire.azure import JobQuery

if TYPE_CHECKING:
    from aj.cli.context import Context

DAY_S = 86_400.0


@dataclass(frozen=True)
class Options:
    """Over which jobs."""

    limit: Annotated[int, Option("-n --limit", "over how many jobs at most (10000)", "N", whole(1))] = 10_000
    days: Annotated[int, Option("-d --days", "jobs not older than this many days (7)", "N", whole(1))] = 7
    archived: Annotated[bool, Option("-a --archived", "of archived jobs")] = False
    workspace: Annotated[str | None, Option("--ws", "of this workspace", "NAME", filled, values="workspace")] = None


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises UserError when no workspace is chosen, NotFound, AuthError, RemoteError."""
    where = remote.need_workspace(ctx, opts.workspace)
    query = JobQuery(since_s=opts.days * DAY_S, archived=opts.archived, limit=opts.limit)
    found = ctx.client.cloud_jobs.stats(where, query)
    if found.stopped:
        ctx.screen.warn(found.stopped, code="truncated")
    ctx.screen.show(view.experiments(found))
    return 0
