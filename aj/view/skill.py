"""Copies of the skill as rows: whose, where, and how they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.store.skills import State
from aj.view import schema
from aj.view.document import Column, Document, Form, listing

if TYPE_CHECKING:
    from aj.model.json import Json
    from aj.store.skills import Copy
    from aj.view.document import Item
    from aj.view.schema import Schema

COLUMNS = (
    Column("agent", form=Form.ID),
    Column("state", form=Form.STATE),
    Column("done", "status"),
    Column("path", form=Form.ID),
    Column("why", flexible=True),
)


def item(agent: str, copy: Copy, status: str, error: Json) -> Item:
    """Return one copy as JSON values; `status` says whether something was done: ok, noop or failed."""
    return {
        "agent": agent,
        "state": copy.state.value,
        "status": status,
        "path": str(copy.folder),
        "why": copy.why,
        "error": error,
    }


def copies(items: Sequence[Item]) -> Document:
    """Make the list of copies."""
    return listing("skill.list", items, COLUMNS, noun="skills", ids="agent")


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    error = schema.record(type=schema.TEXT, code=schema.TEXT, message=schema.TEXT, hint=schema.maybe(schema.TEXT))
    row = schema.record(
        agent=schema.TEXT,
        state=schema.of(State),
        status=schema.one_of("ok", "noop", "failed"),
        path=schema.TEXT,
        why=schema.maybe(schema.TEXT),
        error=schema.maybe(error),
    )
    return {"skill.list": schema.listing(row)}
