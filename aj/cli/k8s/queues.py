"""aj k8s queues: the queues of a cluster, with what they hold and may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.cli import cluster
from aj.view import k8s as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Where."""

    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises NotFound without Volcano, Refused, AuthError, RemoteError."""
    ctx.screen.show(view.queues(ctx.client.k8s.queues(cluster.where(opts, ctx))))
    return 0
