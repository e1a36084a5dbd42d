"""aj auth status: who is signed in to Azure, from which credential, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.view import auth as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing."""


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises AuthError when nobody is signed in."""
    ctx.screen.show(view.status(ctx.client.inventory.auth()))
    return 0
