"""aj daemon start: start the daemon unless it runs, and tell which tickets wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base import text
from aj.base.noun import dataclass
from aj.view import daemon as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.wire.daemon import Started


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Start it. Raises DaemonError with the last lines of its log when it cannot start."""
    show(ctx, "start", ctx.client.daemon.start())
    return 0


def show(ctx: Context, action: str, started: Started) -> None:
    """Print a daemon that runs now, and the projects that have tickets waiting."""
    ctx.tell_warnings(started.warnings)
    words = "running" if started.status == "noop" else "started"
    ctx.screen.show(view.done(action, words, [view.item(started.hello)], status=started.status))
    running = started.hello.busy.jobs_running
    if action != "start" and running:
        goes = "goes" if running == 1 else "go"
        ctx.screen.note(f"{text.plural(running, 'running job')} {goes} on; this daemon watches over them now")
    for project in started.hello.projects:
        if project.queued:
            ctx.screen.note(f"{project.queued} waiting in {project.path or project.key}: `aj queue resume --all`")
