"""aj ws list: the workspaces that this user sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import told
from aj.cli.declare import Option, filled
from aj.view import workspace as view
from aj.wire.azure import InventoryQuery

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Where, and how fresh."""

    subscription: Annotated[str | None, Option("--subscription", "of this subscription only", "ID", filled)] = None
    refresh: Annotated[bool, Option("--refresh", "ask Azure now, whatever was kept")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises AuthError, RemoteError when no part could be read."""
    found = ctx.client.inventory.workspaces(InventoryQuery(opts.subscription, opts.refresh))
    return told.show(ctx, view.workspaces(found), found.told, refresh=opts.refresh)
