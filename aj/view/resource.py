"""Datastores, environments, storage accounts and identities as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.view import schema, told
from aj.view.document import Column, Document, Form, listing, single
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema
    from aj.wire.azure import Told
    from aj.wire.resources import (
        AccountList,
        DatastoreList,
        DatastoreRow,
        EnvironmentAnswer,
        EnvironmentList,
        IdentityList,
    )

DATASTORES = (
    Column("name", form=Form.ID),
    Column("type", "kind"),
    Column("account", form=Form.ID),
    Column("container", form=Form.ID),
    Column("credentials"),
    Column("default", "is_default"),
)
ENVIRONMENTS = (Column("name", form=Form.ID), Column("latest"), Column("archived", "is_archived"))
VERSIONS = (
    Column("version", form=Form.ID),
    Column("image", flexible=True),
    Column("system"),
    Column("archived", "is_archived"),
)
ACCOUNTS = (
    Column("name", form=Form.ID),
    Column("type", "kind"),
    Column("redundancy", "sku"),
    Column("region"),
    Column("resource group", "resource_group", Form.ID),
    Column("subscription", form=Form.ID),
)
IDENTITIES = (
    Column("name", form=Form.ID),
    Column("region"),
    Column("resource group", "resource_group", Form.ID),
    Column("client id", "client_id", Form.ID),
)
IDENTITIES_FULL = (
    *IDENTITIES,
    Column("subscription", form=Form.ID),
    Column("principal id", "principal_id", Form.ID),
    Column("id", form=Form.ID),
)


def datastores(found: DatastoreList) -> Document:
    """Make the list of datastores."""
    return _list("ds.list", _items(found.rows), DATASTORES, "datastores", found.told, workspace=found.workspace)


def datastore(found: DatastoreRow) -> Document:
    """Make the document of one datastore."""
    return single("ds", _item(found), DATASTORES, ids="name")


def environments(found: EnvironmentList) -> Document:
    """Make the list of environments."""
    return _list("env.list", _items(found.rows), ENVIRONMENTS, "environments", found.told, workspace=found.workspace)


def environment(found: EnvironmentAnswer) -> Document:
    """Make the document of one environment: a table of its versions."""
    versions = _items(found.versions)
    body: Item = {"name": found.name, "workspace": found.workspace, "versions": versions, "left_out": found.left_out}
    footer = [f"{found.left_out} more: `-n 0` shows all"] if found.left_out else []
    ids = [row.id for row in found.versions]
    return Document("env", {"item": body}, rows=versions, columns=VERSIONS, ids=ids, footer=footer)


def accounts(found: AccountList) -> Document:
    """Make the list of storage accounts."""
    return _list("sa.list", _items(found.rows), ACCOUNTS, "storage accounts", found.told)


def identities(found: IdentityList, *, full: bool) -> Document:
    """Make the list of identities; an id is what a template takes."""
    columns = IDENTITIES_FULL if full else IDENTITIES
    return _list("uai.list", _items(found.rows), columns, "user-assigned identities", found.told, ids="id")


def _list(
    kind: str,
    items: Sequence[Item],
    columns: Sequence[Column],
    noun: str,
    when: Told,
    *,
    workspace: str | None = None,
    ids: str = "name",
) -> Document:
    extra = told.keys(when) if workspace is None else {"workspace": workspace, **told.keys(when)}
    return listing(kind, items, columns, noun=noun, ids=ids, extra=extra, footer=told.footer(when))


def _items(rows: Sequence[object]) -> tuple[Item, ...]:
    return tuple(_item(row) for row in rows)


def _item(row: object) -> Item:
    return codec.fields(row)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.wire.resources import AccountRow, DatastoreRow, EnvironmentAnswer, EnvironmentRow, IdentityRow

    of_workspace = {"workspace": schema.TEXT, **told.schemas()}
    return {
        "ds.list": schema.listing(schema.of(DatastoreRow), **of_workspace),
        "ds": schema.single(schema.of(DatastoreRow)),
        "env.list": schema.listing(schema.of(EnvironmentRow), **of_workspace),
        "env": schema.single(schema.of(EnvironmentAnswer)),
        "sa.list": schema.listing(schema.of(AccountRow), **told.schemas()),
        "uai.list": schema.listing(schema.of(IdentityRow), **told.schemas()),
    }
