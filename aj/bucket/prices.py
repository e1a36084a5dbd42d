"""What it costs to bring data out of a storage, at list prices. For remarks and the documentation alone."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base import units
from aj.model.bucket import Kind

GB = 10**9
# US dollars for each GB that leaves a storage for somewhere else.
EGRESS_USD: Mapping[str, float] = {"s3": 0.09, "azure": 0.087, "gcs": 0.12}
WORTH_A_WORD_USD = 0.5


def egress_usd(storage: str, size_bytes: int) -> float:
    """Return what so many bytes cost when they leave a storage; 0 for one that asks nothing."""
    return EGRESS_USD.get(storage, 0.0) * size_bytes / GB


def egress_words(kind: Kind, size_bytes: int) -> str | None:
    """Say what so many bytes cost that came from a storage to this machine; None when it is hardly anything."""
    cost = egress_usd(kind.value, size_bytes)
    if cost < WORTH_A_WORD_USD:
        return None
    price = f"about ${cost:.2f} at list price, unless this machine is in its region"
    return f"{units.size(size_bytes)} left the storage, {price}"
