"""aj exp show: one experiment of a workspace: how its jobs fared, and the newest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.declare import Option, Word, filled, whole
from aj.view import experiment as view
from aj.wire.azure import JobQuery

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which one, and how many of its jobs."""

    name: Annotated[str, Word("NAME", "the experiment", filled, values="experiment")]
    limit: Annotated[int, Option("-n --limit", "how many jobs at most; 0 for all (30)", "N", whole())] = 30
    workspace: Annotated[str | None, Option("--ws", "of this workspace", "NAME", filled, values="workspace")] = None


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound when no job of it was seen, UserError when no workspace is chosen, AuthError."""
    where = remote.need_workspace(ctx, opts.workspace)
    found = ctx.client.cloud_jobs.list(where, JobQuery(experiment=opts.name, limit=opts.limit))
    if found.stopped:
        ctx.screen.warn(found.stopped, code="truncated")
    if not found.jobs:
        raise NotFound(f"no job of experiment {opts.name} was seen", hint="`aj exp list`", code="no-experiment")
    ctx.tell_warnings(found.warnings)
    ctx.screen.show(view.experiment(opts.name, found))
    return 0
