"""Workspaces as rows, and one of them with what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema, told
from aj.view.document import Column, Form, listing, result, single
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.resources import WorkspaceAnswer, WorkspaceList, WorkspaceRow

COLUMNS = (
    Column("name", form=Form.ID),
    Column("resource group", "resource_group", Form.ID),
    Column("subscription", form=Form.ID),
    Column("region"),
    Column("current", "is_current"),
)
MORE = (
    Column("storage account", "storage_account", Form.ID),
    Column("workspace id", "workspace_id", Form.ID),
    Column("identities"),
)


def item(row: WorkspaceRow) -> Item:
    """Return a workspace as JSON values."""
    return codec.fields(row)


def workspaces(found: WorkspaceList) -> Document:
    """Make the list of workspaces."""
    return listing(
        "ws.list",
        [item(row) for row in found.rows],
        COLUMNS,
        noun="workspaces",
        ids="name",
        extra=told.keys(found.told),
        footer=told.footer(found.told),
    )


def one(found: WorkspaceAnswer) -> Document:
    """Make the document of one workspace."""
    more = codec.fields(found)
    del more["workspace"]
    return single("ws", {**item(found.workspace), **more}, (*COLUMNS, *MORE), ids="name")


def chosen(row: WorkspaceRow, file: str, *, is_dry: bool) -> Document:
    """Make the document of the workspace that the settings name from now on, or would; then its status is noop."""
    now = "would be" if is_dry else "is"
    words = f"{row.name} ({row.subscription}/{row.resource_group}) {now} the workspace in {file}"
    return result("set", [{**item(row), "file": file}], status="noop" if is_dry else "ok", text=words, ids="name")


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.wire.resources import WorkspaceAnswer, WorkspaceRow

    fields = schema.fields(WorkspaceRow)
    rest = {name: kind for name, kind in schema.fields(WorkspaceAnswer).items() if name != "workspace"}
    return {
        "ws.list": schema.listing(schema.of(WorkspaceRow), **told.schemas()),
        "ws": schema.single(schema.record(**fields, **rest)),
        "result/set": schema.result(schema.record(**fields, file=schema.TEXT)),
    }
