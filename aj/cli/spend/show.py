"""aj spend show: what is spent just now, and what holds jobs back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.view import spend as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Print it. What is wrong with the price table is a warning."""
    answer = ctx.client.spend.show()
    ctx.tell_warnings(answer.warnings)
    if answer.problem is not None:
        ctx.screen.warn(f"nothing starts before the price table can be read: {answer.problem}", code="bad-prices")
    ctx.screen.show(view.spend(answer))
    return 0
