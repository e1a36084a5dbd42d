"""Images of the service's own as rows: what to write in a template, and every name of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema, told
from aj.view.document import Column, Form, listing

if TYPE_CHECKING:
    from aj.view.document import Document
    from aj.view.schema import Schema
    from aj.wire.azure import ImageList

PREFIX = "amlt-sing/"
COLUMNS = (Column("image", form=Form.ID), Column("names", flexible=True))


def images(found: ImageList) -> Document:
    """Make the list of images."""
    return listing(
        "image.list",
        [{"name": row.name, "image": PREFIX + row.name, "names": row.names} for row in found.rows],
        COLUMNS,
        noun="images",
        ids="image",
        extra=told.keys(found.told),
        footer=told.footer(found.told),
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    one = schema.record(name=schema.TEXT, image=schema.TEXT, names=schema.NAMES)
    return {"image.list": schema.listing(one, **told.schemas())}
