"""aj config path: the files that hold settings; works also when they are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.store import config
from aj.view import config as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Print the files, the one that counts most first."""
    found = [("user", config.file_of(ctx.layout, None))]
    if ctx.project:
        found.insert(0, ("project", config.file_of(ctx.layout, ctx.project)))
    ctx.screen.show(view.files(found))
    return 0
