"""aj budget show: how many dollars may be spent in which window, and how many are."""

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
    """Print the budgets: all of them, or those of one session."""
    answer = ctx.client.spend.show()
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.budgets(answer.caps, capped.session(opts.agent_session, ctx)))
    return 0
