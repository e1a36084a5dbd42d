"""A page of help as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.view import schema
from aj.view.document import Document

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema

WIDTH = 100  # a line that is easy to read; longer explanations are wrapped below their term
GAP = 2
LONGEST_TERM = 34  # a longer one has its explanation on the next line

Rows = Sequence[tuple[str, str]]


def page(title: str, says: str, usage: str, sections: Sequence[tuple[str, Rows, Sequence[str]]]) -> Document:
    """Make the document of one page: the title, one line, the usage, and headings with rows or lines."""
    blocks = [f"{title}: {says}", f"Usage: {usage}"]
    items: list[Item] = []
    for heading, rows, lines in sections:
        shown = [f"  {line}" for line in lines] or _table(rows)
        blocks.append("\n".join([f"{heading}:", *shown]))
        items += [{"section": heading, "term": term, "says": explained} for term, explained in rows]
        items += [{"section": heading, "term": line, "says": None} for line in lines]
    body: Item = {"topic": title.removeprefix("aj").strip(), "usage": usage, "items": tuple(items)}
    return Document("help", body, text="\n\n".join(blocks))


def topic(name: str, rows: Rows, *, text: str | None = None) -> Document:
    """Make the document of a topic: a table of terms, or a text."""
    items: list[Item] = [{"section": name, "term": term, "says": explained} for term, explained in rows]
    if text is not None:
        items = [{"section": name, "term": None, "says": text}]
    body: Item = {"topic": name, "usage": None, "items": tuple(items)}
    return Document("help", body, text=text if text is not None else "\n".join(_table(rows)))


def _table(rows: Rows) -> list[str]:
    room = max((len(term) for term, _ in rows if len(term) <= LONGEST_TERM), default=0)
    lines = []
    for term, explained in rows:
        wrapped = textwrap.wrap(explained, WIDTH - room - 2 * GAP) or [""]
        head = f"  {term.ljust(room)}{' ' * GAP}"
        if len(term) > room:
            lines.append(f"  {term}")
            head = " " * (room + 2 * GAP)
        lines.append(f"{head}{wrapped[0]}".rstrip())
        lines += [" " * (room + 2 * GAP) + line for line in wrapped[1:]]
    return lines


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    row = schema.record(section=schema.TEXT, term=schema.maybe(schema.TEXT), says=schema.maybe(schema.TEXT))
    return {"help": schema.record(topic=schema.TEXT, usage=schema.maybe(schema.TEXT), items=schema.many(row))}
