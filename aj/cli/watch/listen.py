"""aj watch listen: one line for each change of a watched job, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import TimedOut
from aj.base.noun import dataclass
from aj.cli.declare import Option, duration
from aj.view import watch as view
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Of what, how, and how long."""

    desktop: Annotated[bool, Option("--desktop", "on this desktop, too")] = False
    every: Annotated[bool, Option("--all", "of every project")] = False
    timeout_s: Annotated[float | None, Option("--timeout", "leave after this long", "DURATION", duration)] = None


def run(opts: Options, ctx: Context) -> int:
    """Print changes until somebody ends it. Raises TimedOut, DaemonError."""
    ctx.client.watches.list()  # the daemon begins to look, if it did not
    key = None if opts.every else ctx.key
    for notice in ctx.client.events.listen(project_key=key, timeout_s=opts.timeout_s):
        if notice.dropped:
            ctx.screen.warn(f"{notice.dropped} events were missed: `aj watch list`", code="missed")
        if notice.topic != "watch":
            continue
        if ctx.screen.format is Format.TABLE:
            ctx.screen.line(view.line(notice.payload, ctx.screen.moment))
        else:
            ctx.screen.item({"type": "state", **notice.payload})
        if opts.desktop:
            _show(ctx, view.words(notice.payload))
    raise TimedOut(f"nothing more is told after {opts.timeout_s or 0:g} s; the watches stay")


def _show(ctx: Context, words: str) -> None:
    """Show a line on the desktop of whoever listens; one that cannot is told once for each line."""
    from aj.base import desktop, proc
    from aj.base.errors import AjError

    try:
        proc.run(desktop.command(ctx.settings.get("PATH"), words), env=dict(ctx.settings.env), timeout_s=10)
    except (AjError, OSError) as error:
        ctx.screen.warn(str(error), code="desktop")
