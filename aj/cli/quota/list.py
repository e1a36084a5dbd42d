"""aj quota list: what is used and what is left of clusters, machine families and computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import told
from aj.cli.declare import Option, filled
from aj.view import quota as view
from aj.wire.azure import InventoryQuery

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Of what, and how fresh."""

    sing: Annotated[bool, Option("--sing", "of virtual clusters only")] = False
    aml: Annotated[bool, Option("--aml", "of computes and machine families only")] = False
    every: Annotated[bool, Option("--all", "also what is 0")] = False
    full: Annotated[bool, Option("--full", "all columns, and also what no job can use")] = False
    subscription: Annotated[str | None, Option("--subscription", "of this subscription only", "ID", filled)] = None
    refresh: Annotated[bool, Option("--refresh", "ask Azure now, whatever was kept")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises AuthError, RemoteError when no part could be read."""
    chosen = tuple(name for name, is_chosen in (("sing", opts.sing), ("aml", opts.aml)) if is_chosen)
    found = ctx.client.inventory.quota(
        InventoryQuery(
            opts.subscription,
            opts.refresh,
            every=opts.every,
            full=opts.full,
            services=chosen or InventoryQuery().services,
        )
    )
    return told.show(ctx, view.quota(found, full=opts.full), found.told, refresh=opts.refresh)
