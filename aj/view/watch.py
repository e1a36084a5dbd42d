"""Watches as rows, and what moved as lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from aj.view import action
from aj.view.document import Column, Form, listing
from aj.wire import codec

if TYPE_CHECKING:
    from aj.model.json import Json
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.watch import WatchDone, WatchRow

COLUMNS = (
    Column("id", form=Form.ID),
    Column("state", form=Form.STATE),
    Column("changed", "changed_at", Form.AGE),
    Column("name", flexible=True),
    Column("told by", "ways"),
    Column("last notice", "delivery", Form.STATE),
    Column("problem", flexible=True),
)


def watches(rows: Sequence[WatchRow]) -> Document:
    """Make the list of watches."""
    return listing("watch.list", [item(row) for row in rows], COLUMNS, noun="watches", ids="id")


def item(row: WatchRow) -> Item:
    """Return a watch as JSON values."""
    return codec.fields(row)


def done(name: str, found: Sequence[tuple[str, WatchDone]]) -> Document:
    """Make the document of watches that were added or removed."""
    items = [
        action.item(job_id, status=one.status, state=one.row.state if one.row else None, detail=one.detail)
        for job_id, one in found
    ]
    status = "ok" if any(one.status == "ok" for _, one in found) else "noop"
    return action.done(name, items, status)


def line(payload: Mapping[str, Json], moment: Callable[[str], str]) -> str:
    """Write one change as a line."""
    return f"{payload.get('id')}  {moment(str(payload.get('at')))}  {words(payload)}"


def words(payload: Mapping[str, Json]) -> str:
    """Write one change without its time."""
    message = payload.get("message")
    return f"{payload.get('name')} is {payload.get('state')}" + (f": {message}" if message else "")


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.view import schema
    from aj.wire.watch import WatchRow

    return {"watch.list": schema.listing(schema.of(WatchRow))}
