"""aj template compare: the difference between two resolved templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Word
from aj.template import load
from aj.view import template as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which two."""

    one: Annotated[str, Word("NAME", "a template", values="template")]
    other: Annotated[str, Word("OTHER", "another one", values="template")]


def run(opts: Options, ctx: Context) -> int:
    """Print the difference; none is no failure."""
    library = load.Library(ctx.need_project())
    ctx.screen.page(view.difference(library.resolve(opts.one), library.resolve(opts.other)))
    return 0
