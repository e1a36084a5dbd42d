"""aj throttle set: how many dollars an hour may run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import capped
from aj.cli.declare import Word
from aj.view import spend as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """How much, and whose."""

    usd: Annotated[int, Word("USD", "whole US dollars an hour, of all hosts at once", capped.limit)]
    agent_session: capped.OfSession = None


def run(opts: Options, ctx: Context) -> int:
    """Set it. Raises UserError without a session where one is due."""
    done = ctx.client.spend.set_cap(opts.usd, session=capped.session(opts.agent_session, ctx))
    ctx.screen.show(view.done("set-cap", done))
    return 0
