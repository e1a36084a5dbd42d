"""aj daemon status: whether the daemon runs; starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.view import daemon as view
from aj.wire.daemon import Presence

if TYPE_CHECKING:
    from aj.cli.context import Context

CODES = {Presence.RUNNING: 0, Presence.STOPPED: 3, Presence.LEAVING: 3, Presence.HUNG: 7, Presence.FOREIGN: 7}


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Print its state: 0 running, 3 not running or just leaving, 7 hung or a stranger at its socket."""
    found = ctx.client.daemon.status()
    if found.drift:
        ctx.tell_drift(found.drift)
    ctx.screen.show(view.status(found))
    if found.presence is Presence.HUNG:
        ctx.screen.note("hint: `aj daemon restart`")
    return CODES[found.presence]
