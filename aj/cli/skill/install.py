"""aj skill install: copy the skill to where coding agents look for skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.cli.skill import places
from aj.cli.skill.places import Forcing as Options
from aj.store import skills
from aj.version import VERSION

if TYPE_CHECKING:
    from aj.cli.context import Context

__all__ = ["Options", "run"]


def run(opts: Options, ctx: Context) -> int:
    """Write it, or bring it up to date. What others wrote stands in the way, unless forced."""
    files = places.packaged()
    return places.each(opts, ctx, lambda copy: skills.write(copy, files, VERSION, force=opts.force))
