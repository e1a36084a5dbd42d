"""aj config show: all settings and where each comes from."""

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
    """Print the table. Raises ConfigError on the first setting that is wrong."""
    ctx.tell_unknown_settings()
    found = ctx.config.all()
    for setting in found:
        config.checked(setting)
    ctx.screen.show(view.settings(found, ctx.directory))
    return 0
