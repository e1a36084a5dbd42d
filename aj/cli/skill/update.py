"""aj skill update: bring the copies up to date that were installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.cli.skill import places
from aj.cli.skill.places import Forcing as Options
from aj.store import skills
from aj.store.skills import Copy, State
from aj.version import VERSION

if TYPE_CHECKING:
    from aj.cli.context import Context

__all__ = ["Options", "run"]


def run(opts: Options, ctx: Context) -> int:
    """Update them. Where none is installed, nothing happens."""
    files = places.packaged()

    def update(copy: Copy) -> bool:
        if copy.state is State.NOT_INSTALLED:
            return False
        return skills.write(copy, files, VERSION, force=opts.force)

    return places.each(opts, ctx, update)
