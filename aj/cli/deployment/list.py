"""aj deployment list: all deployments of this user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.view import deployment as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Print them."""
    answer = ctx.client.deployments.list()
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.deployments(answer.deployments))
    return 0
