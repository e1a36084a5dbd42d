"""aj throttle clear: let any number of dollars an hour run at once."""

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
    """Take it away; one that is not there is `noop`."""
    done = ctx.client.spend.clear_caps(is_throttle=True, session=capped.session(opts.agent_session, ctx))
    if done.status == "noop":
        ctx.screen.note("there is none of these: `aj spend show` lists all")
    ctx.screen.show(view.done("clear-cap", done))
    return 0
