"""Credentials and secrets as rows: what may be told of them, which is never what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema
from aj.view.document import Column, Form, listing
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.bucket import CredentialList, SecretList

CREDENTIALS = (
    Column("name", form=Form.ID),
    Column("kind"),
    Column("opens by", "opens"),
    Column("account", form=Form.ID),
    Column("where", flexible=True),
    Column("age", "created_at", Form.AGE),
)
SECRETS = (Column("name", form=Form.ID), Column("age", "created_at", Form.AGE))


def credentials(found: CredentialList) -> Document:
    """Make the list of credentials."""
    rows = [_row(codec.fields(one)) for one in found.credentials]
    return listing("credentials.list", rows, CREDENTIALS, noun="credentials", ids="name")


def _row(row: Item) -> Item:
    return {**row, "where": row["root"] or row["endpoint"]}


def secrets(found: SecretList) -> Document:
    """Make the list of secrets."""
    rows: list[Item] = [{"name": one.name, "created_at": one.created_at} for one in found.secrets]
    return listing("secrets.list", rows, SECRETS, noun="secrets", ids="name")


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.model.bucket import CredentialFacts
    from aj.wire.bucket import SecretRow

    facts = schema.fields(CredentialFacts)
    one = schema.record(**facts, where=schema.maybe(schema.TEXT))
    return {"credentials.list": schema.listing(one), "secrets.list": schema.listing(schema.of(SecretRow))}
