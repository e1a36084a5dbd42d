"""aj k8s refresh-sas: sign anew what a job of Volcano reads and writes in storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import cluster
from aj.cli.declare import Option, Word, filled, whole
from aj.view import k8s as view

if TYPE_CHECKING:
    from aj.cli.context import Context

LONGEST_H = 168  # a week: longer lives no signature that is made with a user's key


@dataclass(frozen=True)
class Options:
    """Of which job, for how long, and where."""

    job: Annotated[str, Word("JOB", "its name or AJ ID", filled)]
    hours: Annotated[int | None, Option("--hours", "for how long; else as before", "N", whole(1, LONGEST_H))] = None
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Renew them. Raises NotFound, AuthError, Refused without the right, OutcomeUnknown when nobody can tell."""
    found = ctx.client.k8s.refresh(cluster.where(opts, ctx), opts.job, opts.hours)
    ctx.screen.show(view.refreshed(found))
    return 0
