"""aj code prune: remove packed code that no ticket and no job may need any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.declare import Option, duration, filled
from aj.view import code as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.wire.messages import Pruned

KEEP_S = 30 * 86400.0


@dataclass(frozen=True)
class Options:
    """How old, and whether really."""

    keep_s: Annotated[float, Option("--keep", "keep what was used within this long (30d)", "DURATION", duration)] = (
        KEEP_S
    )
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would go")] = False
    remote: Annotated[bool, Option("--remote", "in the container of the workspace instead of on this machine")] = False
    workspace: Annotated[str | None, Option("--ws", "which workspace (with `--remote`)", "NAME", filled)] = None


def run(opts: Options, ctx: Context) -> int:
    """Remove it and print what went; nothing to remove is no failure. Raises OptionError, and as Azure does."""
    pruned = _remote(opts, ctx) if opts.remote else _here(opts, ctx)
    if pruned.archives:
        ctx.screen.note(view.pruned_text(pruned.archives, is_dry=opts.dry_run))
    ctx.screen.show(view.pruned(pruned.archives, is_dry=opts.dry_run))
    return 0


def _here(opts: Options, ctx: Context) -> Pruned:
    if opts.workspace is not None:
        raise OptionError("`--ws` goes with `--remote`", hint="`aj code prune --remote --ws NAME`")
    return ctx.client.code.prune(keep_s=opts.keep_s, dry_run=opts.dry_run)


def _remote(opts: Options, ctx: Context) -> Pruned:
    workspace = remote.need_workspace(ctx, opts.workspace)
    return ctx.client.code.prune_remote(workspace, keep_s=opts.keep_s, dry_run=opts.dry_run)
