"""aj config set: write one setting of this project or of the user; all else in the file stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, filled
from aj.store import config, keys
from aj.view import config as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """What to write, and where."""

    key: Annotated[str, Word("KEY", "the setting", filled, values="setting")]
    value: Annotated[str, Word("VALUE", "its value; lists with commas")]
    user: Annotated[bool, Option("--user", "for this user, in every project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Write the setting. Raises OptionError on an unknown key or a wrong value, before anything is written."""
    return write(ctx, opts.key, opts.value, user=opts.user)


def write(ctx: Context, key: str, value: str, *, user: bool) -> int:
    """Write one setting and print it as it now stands there."""
    known = keys.KEYS.get(key)
    if known and known.scope is keys.Scope.USER and not user:
        raise OptionError(
            f"`{key}` counts for all projects of a user, so a project cannot set it",
            hint=f"`aj config set --user {key} {value}`",
            code="setting-of-the-user",
        )
    project = None if user else ctx.need_project()
    setting, note = config.set_value(ctx.layout, project, key, value)
    if note:
        ctx.screen.note(note)
    if known and known.needs_restart:
        ctx.screen.note("a running daemon takes it after `aj daemon restart`")
    if key == "template" and ctx.project and not (ctx.project.directory / "template" / f"{value}.yaml").exists():
        ctx.screen.warn(f"this project has no template `{value}`; `aj template list` shows them", code="no-template")
    ctx.screen.show(view.one(setting, ctx.directory))
    return 0
