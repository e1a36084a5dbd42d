"""aj config get: one setting, as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.cli.declare import Word, filled
from aj.store import config, keys
from aj.view import config as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which setting."""

    key: Annotated[str, Word("KEY", "the setting", filled, values="setting")]


def run(opts: Options, ctx: Context) -> int:
    """Print the value; nothing when it is not set. Raises NotFound, ConfigError on a wrong value."""
    if opts.key not in keys.KEYS:
        near = keys.nearest(opts.key)
        hint = f"`{near}` is the nearest name" if near else "`aj config show` lists them"
        raise NotFound(f"no setting is called `{opts.key}`", hint=hint)
    setting = ctx.config.setting(opts.key)
    config.checked(setting)
    ctx.screen.show(view.one(setting, ctx.directory))
    return 0
