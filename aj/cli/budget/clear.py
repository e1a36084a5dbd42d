"""aj budget clear: let any number of dollars be spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import capped
from aj.cli.declare import Option, choice
from aj.model.spend import Per
from aj.view import spend as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which one, and whose."""

    per: Annotated[
        str | None,
        Option("--per", "that of a day, a week or a month alone", "WINDOW", choice(*capped.PERS), values="window"),
    ] = None
    agent_session: capped.OfSession = None


def run(opts: Options, ctx: Context) -> int:
    """Take them away; when there is none it is `noop`."""
    per, session = Per(opts.per) if opts.per else None, capped.session(opts.agent_session, ctx)
    done = ctx.client.spend.clear_caps(is_throttle=False, per=per, session=session)
    if done.status == "noop":
        ctx.screen.note("there is none of these: `aj spend show` lists all")
    ctx.screen.show(view.done("clear-cap", done))
    return 0
