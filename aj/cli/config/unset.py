"""aj config unset: take one setting back, so that the next layer or the default holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, filled
from aj.store import config
from aj.view import config as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which setting, and where."""

    key: Annotated[str, Word("KEY", "the setting", filled, values="setting")]
    user: Annotated[bool, Option("--user", "of this user, not of the project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Remove the setting; one that was not set there is no failure."""
    project = None if opts.user else ctx.need_project()
    was_set = config.unset(ctx.layout, project, opts.key)
    ctx.screen.show(view.unset(opts.key, config.file_of(ctx.layout, project), was_set=was_set))
    return 0
