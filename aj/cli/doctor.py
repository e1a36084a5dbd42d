"""aj doctor: look at this machine without asking any network, and tell what would mend each fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.client import checkup
from aj.model.finding import Verdict
from aj.view import doctor as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Print what was found; exit code 1 when something is broken."""
    found = list(checkup.look(ctx.settings, ctx.directory, ctx.clock))
    ctx.screen.show(view.findings(found))
    return 1 if any(one.verdict is Verdict.FAILED for one in found) else 0
