"""aj ws show: one workspace, the chosen one when none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.declare import Word, filled
from aj.view import workspace as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which one."""

    name: Annotated[str | None, Word("NAME", "its name, or SUBSCRIPTION/GROUP/NAME", filled, values="workspace")] = None


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises UserError when none is chosen, NotFound, AuthError."""
    found = ctx.client.inventory.workspace(remote.need_workspace(ctx, opts.name))
    ctx.screen.show(view.one(found))
    return 0
