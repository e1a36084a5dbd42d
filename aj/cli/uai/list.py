"""aj uai list: the user-assigned identities that this user sees; `-o name` prints their ARM ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import told
from aj.cli.declare import Option, filled
from aj.view import resource as view
from aj.wire.azure import InventoryQuery

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Where, how much of each, and how fresh."""

    full: Annotated[bool, Option("--full", "all columns, the ARM id among them")] = False
    subscription: Annotated[str | None, Option("--subscription", "of this subscription only", "ID", filled)] = None
    refresh: Annotated[bool, Option("--refresh", "ask Azure now, whatever was kept")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises AuthError, RemoteError."""
    found = ctx.client.inventory.identities(InventoryQuery(opts.subscription, opts.refresh))
    return told.show(ctx, view.identities(found, full=opts.full), found.told, refresh=opts.refresh)
