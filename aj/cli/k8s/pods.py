"""aj k8s pods: pods with their ranks, and why one does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import cluster
from aj.cli.declare import Option, filled
from aj.view import k8s as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Of which job, and where."""

    job: Annotated[str | None, Option("--job", "those of this job alone", "JOB", filled)] = None
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises NotFound, Refused, AuthError, RemoteError."""
    ctx.screen.show(view.pods(ctx.client.k8s.pods(cluster.where(opts, ctx), opts.job)))
    return 0
