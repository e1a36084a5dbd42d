"""aj k8s jobs: the jobs of Volcano in a namespace, some of them, or one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from aj.backend.volcano import states
from aj.base.noun import dataclass
from aj.cli import cluster
from aj.cli.declare import Option, Word, filled
from aj.view import k8s as view

if TYPE_CHECKING:
    from collections.abc import Set

    from aj.cli.context import Context
    from aj.wire.kube import GangRow


@dataclass(frozen=True)
class Options:
    """Which, and where."""

    job: Annotated[str | None, Word("JOB", "its name or AJ ID", filled)] = None
    status: Annotated[
        tuple[str, ...], Option("-s --status", "in this phase, or in this state of `aj`", "STATE", filled, repeats=True)
    ] = ()
    queue: Annotated[str | None, Option("--queue", "of this queue", "NAME", filled)] = None
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises NotFound, Refused, AuthError, RemoteError."""
    found = ctx.client.k8s.jobs(cluster.where(opts, ctx), opts.job)
    words = {word.lower() for word in opts.status}
    rows = tuple(row for row in found.rows if _is_wanted(row, words, opts.queue))
    ctx.screen.show(view.jobs(replace(found, rows=rows)))
    ctx.screen.note(f"by hand: `{found.by_hand}`")
    return 0


def _is_wanted(row: GangRow, words: Set[str], queue: str | None) -> bool:
    state = states.state_of(row.phase)
    said = {row.phase.lower(), state.value if state else "unknown"}
    return bool(not words or words & said) and queue in (None, row.queue)
