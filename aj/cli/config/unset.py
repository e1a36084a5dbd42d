"""aj config unset: take one setting back, so that the next layer or the default holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from aj.cli.context import Context
from aj.cli.declare import Option, Word, filled
from aj.store import config
from aj.view.document import Item, result


@dataclass(frozen=True)
class Options:
    """Which setting, and where."""

    key: Annotated[str, Word("KEY", "the setting", filled, values="setting")]
    user: Annotated[bool, Option("--user", "of this user, not of the project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Remove the setting; one that was not set there is no failure."""
    project = None if opts.user else ctx.need_project()
    was_set = config.unset(ctx.layout, project, opts.key)
    item: Item = {"key": opts.key, "file": str(config.file_of(ctx.layout, project))}
    words = f"{opts.key} is no longer set" if was_set else f"{opts.key} was not set there"
    ctx.screen.show(result("unset", [item], status="ok" if was_set else "noop", text=words))
    return 0
