"""Rows as text: fitted and coloured for a terminal, tabs and full values for a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aj.base import text, units
from aj.base.noun import dataclass
from aj.view.document import Form
from aj.view.times import Times

if TYPE_CHECKING:
    from aj.model.json import Json
    from aj.view.document import Column, Document, Item

GAP = "  "
BRIEF_S = 10.0  # below it a tenth of a second tells something
LEAST_WIDTH = 8  # a shortened column keeps at least this much, else it tells nothing
RIGHT = (Form.NUMBER, Form.SIZE, Form.SECONDS)
# Colour repeats the word of a state, it never replaces it.
COLOURS = {
    "32": ("completed", "submitted", "ok", "running", "leaf"),
    "31": ("failed", "errored", "invalid", "broken", "hung", "unknown"),
    "33": ("queued", "retrying", "recovering", "canceled", "terminated", "waiting"),
}
_COLOUR_OF = {word: colour for colour, words in COLOURS.items() for word in words}


@dataclass(frozen=True)
class Look:
    """How a table may look: `width` in cells is None off a terminal."""

    times: Times
    width: int | None = None
    colour: bool = False
    ellipsis: str = "…"


def render(document: Document, look: Look) -> str:
    """Return the whole text of a document's table; empty when there is nothing to show."""
    if not document.rows or not document.columns:
        return ""
    if document.upright:
        return _upright(document.rows[0], document.columns, look)
    return _across(document.rows, document.columns, look)


def ended(words: str) -> str:
    """Return a text with a newline at its end."""
    return words if not words or words.endswith("\n") else words + "\n"


def _across(rows: Sequence[Item], columns: Sequence[Column], look: Look) -> str:
    cells = [[_cell(column, row, look) for column in columns] for row in rows]
    titles = [_title(column, look) for column in columns]
    if look.width is None:
        lines = ["\t".join(line) for line in [titles, *cells]]
        return "\n".join(_coloured_line(line, at, columns, look) for at, line in enumerate(lines)) + "\n"
    widths = [max(width(line[at]) for line in [titles, *cells]) for at in range(len(columns))]
    _fit(widths, columns, look.width)
    head = _line(titles, columns, widths, look)
    lines = [_bold(head, look)]
    for line in cells:
        lines.append(_line(line, columns, widths, look, states=True))
    return "\n".join(lines) + "\n"


def _title(column: Column, look: Look, *, spoken: bool = False) -> str:
    """Name a column by what stands in it: a pipe gets the moment instead of the age, and bare seconds."""
    if look.width is None and column.form is Form.SECONDS and not spoken:
        return f"{column.title}_s"
    return "created" if look.width is None and column.form is Form.AGE and column.title == "age" else column.title


def _coloured_line(line: str, at: int, columns: Sequence[Column], look: Look) -> str:
    if not look.colour or at == 0:
        return _bold(line, look) if at == 0 else line
    parts = line.split("\t")
    return "\t".join(
        _paint(part, look) if column.form is Form.STATE else part for part, column in zip(parts, columns, strict=True)
    )


def _fit(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Take what is too much from the last flexible column, in place."""
    flexible = [at for at, column in enumerate(columns) if column.flexible]
    if not flexible:
        return
    too_much = sum(widths) + len(GAP) * (len(widths) - 1) - room
    if too_much > 0:
        widths[flexible[-1]] = max(LEAST_WIDTH, widths[flexible[-1]] - too_much)


def _line(
    cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], look: Look, states: bool = False
) -> str:
    parts = []
    for word, column, room in zip(cells, columns, widths, strict=True):
        short = shortened(word, room, look.ellipsis)
        space = " " * (room - width(short))
        shown = _paint(short, look) if states and column.form is Form.STATE else short
        parts.append(space + shown if column.form in RIGHT else shown + space)
    return GAP.join(parts).rstrip()


def _upright(row: Item, columns: Sequence[Column], look: Look) -> str:
    shown = [(column, _cell(column, row, look, spoken=True)) for column in columns]
    shown = [(column, word) for column, word in shown if word]
    if look.width is None:
        return "".join(f"{_title(column, look, spoken=True)}\t{word}\n" for column, word in shown)
    room = max((len(column.title) for column, _ in shown), default=0)
    return "".join(
        f"{_bold(column.title.ljust(room), look)}{GAP}{_paint(word, look) if column.form is Form.STATE else word}\n"
        for column, word in shown
    )


def _cell(column: Column, row: Item, look: Look, *, spoken: bool = False) -> str:
    return text.cell(_written(column.of(row), column.form, look, spoken=spoken))


def _written(value: Json, form: Form, look: Look, *, spoken: bool = False) -> str:
    """Write a value by its form. `spoken` is one field of one thing, which people read off a terminal too."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if form in (Form.AGE, Form.TIME) and isinstance(value, str):
        return look.times.age(value) if form is Form.AGE and look.width is not None else look.times.local(value)
    if isinstance(value, int | float):
        if form is Form.SIZE and look.width is not None:
            return units.size(int(value))
        if form is Form.SECONDS and (spoken or look.width is not None):
            return f"{value:.1f}s" if 0 < value < BRIEF_S else units.duration(value)
    if isinstance(value, list | tuple):
        return ", ".join(_written(item, form, look) for item in value)
    return str(value)


def _bold(words: str, look: Look) -> str:
    return f"\x1b[1m{words}\x1b[0m" if look.colour else words


def _paint(word: str, look: Look) -> str:
    colour = _COLOUR_OF.get(word)
    return f"\x1b[{colour}m{word}\x1b[0m" if look.colour and colour else word


def width(words: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if words.isascii():
        return len(words)
    import unicodedata  # only for text outside ASCII

    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in words)
    none = sum(unicodedata.combining(char) != 0 or char in "\u200b\u200d\ufe0f" for char in words)
    return len(words) + wide - none


def shortened(words: str, room: int, ellipsis: str = "…") -> str:
    """Return the text cut to so many cells, with an ellipsis where something is missing."""
    if width(words) <= room:
        return words
    while words and width(words) > room - width(ellipsis):
        words = words[:-1]
    return words + ellipsis
