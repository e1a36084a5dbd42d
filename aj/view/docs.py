"""Pages of documentation, and the list of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema
from aj.view.document import Column, Document, Form

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema


def _items(found: Mapping[str, str]) -> list[Item]:
    return [{"topic": topic, "title": _title(words), "text": words} for topic, words in found.items()]


def _title(words: str) -> str:
    return words.partition("\n")[0].removeprefix("#").strip()


def pages(found: Mapping[str, str]) -> Document:
    """Make the document of whole pages."""
    return Document("docs", {"items": tuple(_items(found))}, text="\n".join(found.values()))


def index(found: Mapping[str, str]) -> Document:
    """Make the list of pages; in JSON they are whole."""
    items = _items(found)
    columns = (Column("topic", form=Form.ID), Column("title"))
    return Document("docs", {"items": tuple(items)}, rows=items, columns=columns)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    page = schema.record(topic=schema.TEXT, title=schema.TEXT, text=schema.TEXT)
    return {"docs": schema.record(items=schema.many(page))}
