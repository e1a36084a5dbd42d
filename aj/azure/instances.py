"""Instance types: the catalogue of what a virtual cluster's machines are, region by region."""

from __future__ import annotations

import re

from aj.azure import hardware
from aj.azure.arm import Call, Session, region_parts
from aj.azure.hardware import Hardware
from aj.base.noun import dataclass
from aj.net.document import Document

API = "2021-03-01-preview"
PREFIX = "Singularity."
_VARIANT = re.compile(r".*-n[0-9]+\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class InstanceType:
    """One type in one region. `gpus` is 0 for a machine without any; memory is that of the whole machine."""

    name: str
    series: str
    region: str
    gpus: int
    cores: int
    memory_gib: float
    description: str

    @property
    def hardware(self) -> Hardware:
        """What its description tells."""
        return hardware.read(self.description)

    @property
    def short(self) -> str:
        """Its name without the service's prefix."""
        return self.name.removeprefix(PREFIX)


def list_all(session: Session, subscription: str, region: str) -> tuple[InstanceType, ...]:
    """List the instance types of a region, variants for a number of nodes left out."""
    parts = (*region_parts(subscription, region), "instanceTypeSeries")
    call = Call(session, parts, API, f"list the instance types of region {region}")
    rows = (row for row in call.each() if not _VARIANT.match(row.need_text("name")))
    return tuple(_made(row, region) for row in rows)


def _made(row: Document, region: str) -> InstanceType:
    return InstanceType(
        row.need_text("name"),
        row.need_text("instanceTypeSeriesId"),
        region,
        row.whole("numberOfGPUs") or 0,
        row.whole("numberOfCores") or 0,
        row.number("memoryGiB") or 0.0,
        row.text("description") or "",
    )
