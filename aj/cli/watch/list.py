"""aj watch list: watched jobs, where each stands, and how one is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import watching
from aj.cli.declare import Option
from aj.view import watch as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Whose."""

    every: Annotated[bool, Option("--all", "of every project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the list, from disk: no daemon is asked."""
    ctx.screen.show(view.watches(watching.on_disk(ctx, every=opts.every)))
    return 0
