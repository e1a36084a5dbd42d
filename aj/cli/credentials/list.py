"""aj credentials list: what opens storage, without what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.view import credential as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing to choose."""


def run(_: Options, ctx: Context) -> int:
    """Print the list."""
    found = ctx.client.buckets.credentials()
    ctx.tell_warnings(found.warnings, code="damaged-credential")
    ctx.screen.show(view.credentials(found))
    return 0
