"""aj secrets list: the names of saved values."""

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
    ctx.screen.show(view.secrets(ctx.client.buckets.secrets()))
    return 0
