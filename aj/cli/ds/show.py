"""aj ds show: one datastore of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.declare import Option, Word, filled
from aj.view import resource as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which one."""

    name: Annotated[str, Word("NAME", "the datastore", filled, values="datastore")]
    workspace: Annotated[str | None, Option("--ws", "of this workspace", "NAME", filled, values="workspace")] = None


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound with the nearest name, UserError when no workspace is chosen, AuthError."""
    where = remote.need_workspace(ctx, opts.workspace)
    ctx.screen.show(view.datastore(ctx.client.inventory.datastore(where, opts.name)))
    return 0
