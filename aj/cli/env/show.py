"""aj env show: the versions of one environment of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.declare import Option, Word, filled, whole
from aj.view import resource as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which one, and how many of its versions."""

    name: Annotated[str, Word("NAME", "the environment", filled, values="environment")]
    limit: Annotated[int, Option("-n --limit", "how many versions at most; 0 for all (10)", "N", whole())] = 10
    workspace: Annotated[str | None, Option("--ws", "of this workspace", "NAME", filled, values="workspace")] = None


def run(opts: Options, ctx: Context) -> int:
    """Print them. Raises NotFound with the nearest name, UserError when no workspace is chosen, AuthError."""
    where = remote.need_workspace(ctx, opts.workspace)
    ctx.screen.show(view.environment(ctx.client.inventory.environment(where, opts.name, limit=opts.limit)))
    return 0
