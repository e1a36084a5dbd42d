"""aj k8s status: where one is, and what the cluster says of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import cluster
from aj.cli.declare import Option
from aj.view import k8s as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Where, and whether the cluster is asked."""

    check: Annotated[bool, Option("--check-cluster", "ask the cluster: version, Volcano, rights")] = False
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Print it; exit code 1 when the cluster gives no answer. Raises ConfigError, AuthError."""
    found = ctx.client.k8s.status(cluster.where(opts, ctx), check=opts.check)
    ctx.screen.show(view.status(found))
    if found.problem is not None:
        ctx.screen.warn(found.problem, code="no-cluster")
    return 1 if found.problem is not None else 0
