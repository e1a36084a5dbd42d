"""aj k8s events: what happened to a job and its pods, or to one pod, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import cluster
from aj.cli.declare import Word, filled
from aj.view import k8s as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Of what, and where."""

    name: Annotated[str, Word("POD|JOB", "a pod, or a job by its name or AJ ID", filled)]
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises NotFound, Refused, AuthError, RemoteError."""
    ctx.screen.show(view.events(ctx.client.k8s.events(cluster.where(opts, ctx), opts.name)))
    return 0
