"""aj code prune: remove packed code that no ticket and no job may need any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Option, duration
from aj.view import code as view

if TYPE_CHECKING:
    from aj.cli.context import Context

KEEP_S = 30 * 86400.0


@dataclass(frozen=True)
class Options:
    """How old, and whether really."""

    keep_s: Annotated[float, Option("--keep", "keep what was used within this long (30d)", "DURATION", duration)] = (
        KEEP_S
    )
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would go")] = False


def run(opts: Options, ctx: Context) -> int:
    """Remove it and print what went; nothing to remove is no failure."""
    pruned = ctx.client.code.prune(keep_s=opts.keep_s, dry_run=opts.dry_run)
    if pruned.archives:
        ctx.screen.note(view.pruned_text(pruned.archives, is_dry=opts.dry_run))
    ctx.screen.show(view.pruned(pruned.archives, is_dry=opts.dry_run))
    return 0
