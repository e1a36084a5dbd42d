"""Moments as Azure writes them: ISO 8601 with up to seven digits of a second, or without a zone and then UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(words: str | None) -> float | None:
    """Return seconds since the epoch; None for nothing, and for what is no moment."""
    if not words:
        return None
    try:
        found = datetime.fromisoformat(words.strip())
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
