"""aj daemon stop: end the daemon when its running submission is done; jobs go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Option, duration
from aj.view import daemon as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """How patiently."""

    force: Annotated[bool, Option("--force", "at once; a running submission has an unknown outcome then")] = False
    timeout_s: Annotated[float | None, Option("--timeout", "give up waiting after this long", "DURATION", duration)] = (
        None
    )


def run(opts: Options, ctx: Context) -> int:
    """Stop it; none running is no failure. Raises TimedOut, DaemonError for a stranger at the socket."""
    stopped = ctx.client.daemon.stop(force=opts.force, timeout_s=opts.timeout_s)
    ctx.tell_warnings(stopped.warnings)
    words = "not running" if stopped.status == "noop" else "stopped"
    if stopped.swept:
        ctx.screen.note("removed what a killed daemon had left")
    item = {"pid": stopped.pid, "killed": stopped.killed, "swept": stopped.swept}
    ctx.screen.show(view.done("stop", words, [item], status=stopped.status))
    return 0
