"""aj throttle show: how many dollars an hour may run at once, and how many do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.cli import capped
from aj.view import spend as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Whose."""

    agent_session: capped.OfSession = None


def run(opts: Options, ctx: Context) -> int:
    """Print the throttles: all of them, or that of one session."""
    answer = ctx.client.spend.show()
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.throttles(answer.caps, capped.session(opts.agent_session, ctx)))
    return 0
