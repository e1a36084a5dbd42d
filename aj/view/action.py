"""What an action did to each thing it was asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.model.ticket import Fault
from aj.view import schema
from aj.view.document import Column, Form, result

if TYPE_CHECKING:
    from aj.view.document import Document, Item
    from aj.view.schema import Schema

COLUMNS = (
    Column("id", form=Form.ID),
    Column("status", form=Form.STATE),
    Column("state", form=Form.STATE),
    Column("detail", flexible=True),
)


def item(name: str, *, status: str, state: str | None, detail: str | None = None) -> Item:
    """Return what became of one thing: `status` is ok, noop, failed or unknown, `state` where it stands now."""
    return {"id": name, "status": status, "state": state, "detail": detail, "error": None}


def done(action: str, items: Sequence[Item], status: str) -> Document:
    """Make the document of an action."""
    return result(action, items, COLUMNS, status=status, ids="id")


def item_schema() -> Schema:
    """Return the schema of what became of one thing."""
    maybe_text = schema.maybe(schema.TEXT)
    status = schema.one_of("ok", "noop", "failed", "unknown")
    return schema.record(
        id=schema.TEXT, status=status, state=maybe_text, detail=maybe_text, error=schema.of(Fault | None)
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    return {"result": schema.result(item_schema())}
