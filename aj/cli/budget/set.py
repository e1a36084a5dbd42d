"""aj budget set: how many dollars may be spent in a day, a week or a month."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import capped
from aj.cli.declare import Option, Word, choice
from aj.model.spend import Per
from aj.view import spend as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """How much, in which window, and whose."""

    usd: Annotated[int, Word("USD", "whole US dollars in the window", capped.limit)]
    per: Annotated[
        str | None, Option("--per", "day, week or month, by UTC", "WINDOW", choice(*capped.PERS), values="window")
    ] = None
    agent_session: capped.OfSession = None


def run(opts: Options, ctx: Context) -> int:
    """Set it. Raises OptionError without a window, UserError without a session where one is due."""
    if opts.per is None:
        hint = f"`aj budget set {opts.usd} --per month`"
        raise OptionError("`--per` is missing: day, week or month", hint=hint, code="missing-option")
    done = ctx.client.spend.set_cap(opts.usd, per=Per(opts.per), session=capped.session(opts.agent_session, ctx))
    ctx.screen.show(view.done("set-cap", done))
    return 0
