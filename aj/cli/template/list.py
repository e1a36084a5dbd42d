"""aj template list: the templates of this project; a broken file is a row and hides no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.template import load
from aj.view import template as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Print the list."""
    library = load.Library(ctx.need_project())
    for path in library.strays():
        ctx.screen.warn(f"{path.name} is not read: templates end in `.yaml`", code="not-read", file=str(path))
    ctx.screen.show(view.entries(library.entries(), ctx.default_template()))
    return 0
