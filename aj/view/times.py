"""Moments for people: how long ago, and the local time of a chosen zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from aj.base import clock, units
from aj.base.noun import dataclass


@dataclass(frozen=True)
class Times:
    """`now` is seconds since the epoch; `zone` is None for the system's own zone."""

    now: float
    zone: tzinfo | None = None

    def age(self, moment: str) -> str:
        """Return how long ago an RFC 3339 moment was, as `3m20s`; what is no moment stays as it is."""
        try:
            return units.duration(self.now - clock.from_rfc3339(moment))
        except ValueError:
            return moment

    def local(self, moment: str) -> str:
        """Return an RFC 3339 moment in the local zone, to the second, with its offset."""
        try:
            seconds = clock.from_rfc3339(moment)
        except ValueError:
            return moment
        return datetime.fromtimestamp(seconds, UTC).astimezone(self.zone).isoformat(timespec="seconds")


def zone(name: str | None) -> tzinfo | None:
    """Return the zone of an IANA name; None for `system` or nothing. Raises ValueError on an unknown name."""
    if not name or name == "system":
        return None
    import zoneinfo  # 8 ms, only when a zone is set

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"`{name}` is no time zone of this machine") from None
