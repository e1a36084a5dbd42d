"""Moments as a cluster writes them."""

from __future__ import annotations

from aj.base.clock import from_rfc3339


def seconds(words: str | None) -> float | None:
    """Return a moment in seconds since the epoch; None when there is none, or it cannot be read."""
    if not words:
        return None
    try:
        return from_rfc3339(words)
    except ValueError:
        return None
