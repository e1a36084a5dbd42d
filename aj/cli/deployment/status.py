"""aj deployment status: one deployment with its copies and the jobs that they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Word, filled
from aj.view import deployment as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which one."""

    name: Annotated[str, Word("NAME", "the deployment", filled, values="deployment")]


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound."""
    answer = ctx.client.deployments.show(opts.name)
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.status(answer.deployment))
    return 0
