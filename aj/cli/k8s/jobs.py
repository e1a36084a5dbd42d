"""aj k8s jobs: the jobs of Volcano in a namespace, or one of them."""

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
    """Which, and where."""

    job: Annotated[str | None, Word("JOB", "its name or AJ ID", filled)] = None
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises NotFound, Refused, AuthError, RemoteError."""
    ctx.screen.show(view.jobs(ctx.client.k8s.jobs(cluster.where(opts, ctx), opts.job)))
    return 0
