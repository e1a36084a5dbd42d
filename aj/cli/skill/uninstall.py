"""aj skill uninstall: remove the copies that were installed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.cli.skill import places
from aj.cli.skill.places import Forcing as Options
from aj.store import skills

if TYPE_CHECKING:
    from aj.cli.context import Context

__all__ = ["Options", "run"]


def run(opts: Options, ctx: Context) -> int:
    """Remove them. One that was changed stays, unless forced; what was never written here always stays."""
    return places.each(opts, ctx, lambda copy: skills.remove(copy, force=opts.force))
