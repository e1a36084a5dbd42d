"""Usages: how much of each machine family a subscription has in use in a region, and how much it may."""

from __future__ import annotations

from aj.azure.arm import WORKSPACE_API, Call, Session, region_parts
from aj.base.noun import dataclass
from aj.net.document import Document


@dataclass(frozen=True)
class Usage:
    """One family, or a total. A limit of -1 is told as None: there is none."""

    name: str
    label: str
    used: int
    limit: int | None
    unit: str
    region: str

    @property
    def available(self) -> int | None:
        """What is left, never below 0; None when there is no limit."""
        return None if self.limit is None else max(0, self.limit - self.used)


def usages(session: Session, subscription: str, region: str) -> tuple[Usage, ...]:
    """List the usages of a subscription in a region."""
    parts = (*region_parts(subscription, region), "usages")
    call = Call(session, parts, WORKSPACE_API, f"read the usages of region {region} in subscription {subscription}")
    return call.read(lambda row: _made(row, region)).rows


def _made(row: Document, region: str) -> Usage:
    name = row.need_text("name", "value")
    limit = row.whole("limit")
    return Usage(
        name,
        row.text("name", "localizedValue") or name,
        row.whole("currentValue") or 0,
        None if limit is None or limit < 0 else limit,
        row.text("unit") or "",
        region,
    )
