"""aj docs: the documentation, packaged with the program, as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import aj.docs
from aj.base import text
from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word
from aj.view import docs as view

if TYPE_CHECKING:
    from aj.cli.context import Context

FIRST = "start"


@dataclass(frozen=True)
class Options:
    """Which page."""

    topic: Annotated[str | None, Word("TOPIC", "the page; without one the list of pages", values="docs")] = None
    every: Annotated[bool, Option("--all", "all pages, one after the other")] = False
    titles: Annotated[bool, Option("--list", "the list of pages")] = False


def pages() -> dict[str, str]:
    """Return topic -> Markdown of every page, the first steps first."""
    folder = Path(aj.docs.__file__).parent
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    return {topic: found[topic] for topic in sorted(found, key=lambda topic: (topic != FIRST, topic))}


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises OptionError with the nearest name on an unknown topic."""
    found = pages()
    if opts.topic is not None and opts.topic not in found:
        near = text.nearest(opts.topic, found)
        hint = f"`aj docs {near}`" if near else "`aj docs` lists the pages"
        raise OptionError(f"no page is called `{opts.topic}`", hint=hint, code="unknown-topic")
    if opts.topic is not None:
        ctx.screen.page(view.pages({opts.topic: found[opts.topic]}))
    elif opts.every and not opts.titles:
        ctx.screen.page(view.pages(found))
    else:
        ctx.screen.show(view.index(found))
    return 0
