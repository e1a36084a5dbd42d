"""aj k8s delete: delete a job of Volcano with its pods, its Secret and its code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import cluster
from aj.cli.declare import Option, Word, filled
from aj.view import k8s as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which, and where."""

    job: Annotated[str, Word("JOB", "its name or AJ ID", filled)]
    yes: Annotated[bool, Option("-y --yes", "do not ask")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would go")] = False
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Delete it. Raises NotFound, Refused without a yes or the right, OutcomeUnknown when nobody can tell."""
    where = cluster.where(opts, ctx)
    if opts.dry_run:
        ctx.screen.show(view.jobs(ctx.client.k8s.jobs(where, opts.job)))
        return 0
    ctx.screen.confirm(f"delete job {opts.job} with its pods", yes=opts.yes)
    found = ctx.client.k8s.delete(where, opts.job)
    ctx.tell_warnings(found.notes, code="left")
    ctx.screen.show(view.removed(opts.job, found))
    return 0
