"""aj skill status: whether coding agents know how to use `aj`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.cli.skill import places
from aj.cli.skill.places import Options
from aj.view import skill as view

if TYPE_CHECKING:
    from aj.cli.context import Context

__all__ = ["Options", "run"]


def run(opts: Options, ctx: Context) -> int:
    """Print how the copy of each agent stands; none is no failure."""
    found = places.copies(opts, ctx)
    ctx.screen.show(view.copies([view.item(agent, copy, "noop", None) for agent, copy in found.items()]))
    return 0
