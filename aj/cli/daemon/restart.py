"""aj daemon restart: end the daemon and start it with this environment; what waited goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.daemon import start
from aj.cli.declare import Option, duration

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
    """Restart it. Raises TimedOut, DaemonError."""
    start.show(ctx, "restart", ctx.client.daemon.restart(force=opts.force, timeout_s=opts.timeout_s))
    return 0
