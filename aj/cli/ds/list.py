"""aj ds list: the datastores of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import remote, told
from aj.cli.declare import Option, filled
from aj.view import resource as view
from aj.wire.azure import InventoryQuery

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Of which workspace, and how fresh."""

    workspace: Annotated[str | None, Option("--ws", "of this workspace", "NAME", filled, values="workspace")] = None
    refresh: Annotated[bool, Option("--refresh", "ask Azure now, whatever was kept")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises UserError when no workspace is chosen, NotFound, AuthError, RemoteError."""
    where = remote.need_workspace(ctx, opts.workspace)
    found = ctx.client.inventory.datastores(where, InventoryQuery(refresh=opts.refresh))
    return told.show(ctx, view.datastores(found), found.told, refresh=opts.refresh)
