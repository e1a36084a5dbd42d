"""Quota as rows: what is used and what is left, for everybody and for this user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema, told
from aj.view.document import Column, Form, listing
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.azure import QuotaList, QuotaRow

COLUMNS = (
    Column("service"),
    Column("place", form=Form.ID),
    Column("region"),
    Column("series", flexible=True),
    Column("accelerator"),
    Column("tier"),
    Column("used/limit", "use"),
    Column("free", form=Form.NUMBER),
    Column("unit"),
    Column("user used/limit", "user_use"),
)
FULL = (
    *COLUMNS,
    Column("user free", "user_free", Form.NUMBER),
    Column("gpu memory", "gpu_memory_gb", Form.NUMBER),
    Column("subscription", form=Form.ID),
    Column("group", form=Form.ID),
    Column("problem"),
)


def item(row: QuotaRow) -> Item:
    """Return a row as JSON values. A limit of null means that there is none."""
    whole = codec.fields(row)
    is_known = row.series is not None
    return {
        **whole,
        "use": told.ratio(row.used, row.limit) if is_known else None,
        "user_use": told.ratio(row.user_used, row.user_limit) if row.has_user_limit else None,
    }


def quota(found: QuotaList, *, full: bool) -> Document:
    """Make the list of quota."""
    return listing(
        "quota.list",
        [item(row) for row in found.rows],
        FULL if full else COLUMNS,
        noun="quota",
        ids="place",
        extra=told.keys(found.told),
        footer=told.footer(found.told, found.left_out),
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.wire.azure import QuotaRow

    maybe_text = schema.maybe(schema.TEXT)
    one = schema.record(**schema.fields(QuotaRow), use=maybe_text, user_use=maybe_text)
    return {"quota.list": schema.listing(one, **told.schemas())}
