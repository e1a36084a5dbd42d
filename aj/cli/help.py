"""aj help: the page of a command, or of a topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base import settings
from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import hints, page, tree
from aj.cli.declare import Word
from aj.view import help as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Document


@dataclass(frozen=True)
class Options:
    """What is asked about."""

    words: Annotated[tuple[str, ...], Word("COMMAND", "a command or a topic", many=True, values="help")] = ()


def run(opts: Options, ctx: Context) -> int:
    """Print the page. Raises OptionError with the nearest name on an unknown word."""
    if len(opts.words) == 1 and opts.words[0] in tree.TOPICS:
        ctx.screen.page(of_topic(opts.words[0]))
        return 0
    path: tuple[str, ...] = ()
    for word in opts.words:
        longer = tree.resolve((*path, word))
        if longer is None:
            raise _unknown(path, word)
        path = longer
    ctx.screen.page(page.document(path))
    return 0


def _unknown(path: tuple[str, ...], word: str) -> OptionError:
    topic = hints.slip(word, tree.TOPICS) if not path else None
    meant = topic or hints.command(path, word)
    hint = f"`aj help {meant}`" if meant else "`aj help` lists the commands"
    return OptionError(f"no help for `{word}`", hint=hint, code="unknown-topic")


def of_topic(name: str) -> Document:
    """Return the page of a topic."""
    if name == "exit-codes":
        return view.topic(name, [(str(code), says) for code, says in page.EXIT_CODES.items()])
    if name == "environment":
        return view.topic(name, [*settings.OURS.items(), *settings.FOREIGN.items()])
    written = (Path(__file__).parent / "topics" / f"{name}.txt").read_text(encoding="utf-8")
    return view.topic(name, (), text=written)
