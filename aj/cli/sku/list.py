"""aj sku list: types of machines, each with the SKU that asks for it in a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import told
from aj.cli.declare import Option, filled
from aj.view import sku as view
from aj.wire.azure import InventoryQuery

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which types, and how fresh."""

    every: Annotated[bool, Option("--all", "also those that no cluster has quota for")] = False
    subscription: Annotated[str | None, Option("--subscription", "of this subscription only", "ID", filled)] = None
    refresh: Annotated[bool, Option("--refresh", "ask Azure now, whatever was kept")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises AuthError, RemoteError when no part could be read."""
    found = ctx.client.inventory.skus(InventoryQuery(opts.subscription, opts.refresh, every=opts.every))
    return told.show(ctx, view.skus(found), found.told, refresh=opts.refresh)
