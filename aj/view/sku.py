"""Types of machines as rows, each with the SKU that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema, told
from aj.view.document import Column, Form, listing
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.azure import SkuList, SkuRow

COLUMNS = (
    Column("sku", form=Form.ID),
    Column("instance type", "name", Form.ID),
    Column("series"),
    Column("region"),
    Column("accelerator"),
    Column("gpus", form=Form.NUMBER),
    Column("gpu memory", "gpu_memory_gb", Form.NUMBER),
    Column("cores", form=Form.NUMBER),
    Column("memory", "memory_gib", Form.NUMBER),
    Column("scratch", "scratch_gib", Form.NUMBER),
    Column("nvlink"),
    Column("ib", "infiniband"),
    Column("clusters", flexible=True),
)


def item(row: SkuRow) -> Item:
    """Return a row as JSON values. Memory of a GPU is in GB, of the machine and its scratch space in GiB."""
    return codec.fields(row)


def skus(found: SkuList) -> Document:
    """Make the list of types."""
    left = [f"{found.left_out} more that no cluster has quota for: `--all`"] if found.left_out else []
    return listing(
        "sku.list",
        [item(row) for row in found.rows],
        COLUMNS,
        noun="types of machines",
        ids="name",
        extra=told.keys(found.told),
        footer=[*told.footer(found.told), *left],
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.wire.azure import SkuRow

    return {"sku.list": schema.listing(schema.of(SkuRow), **told.schemas())}
