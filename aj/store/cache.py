"""Answers of remote services with their age. May be deleted at any time; a damaged one is as good as none."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import AjError
from aj.model.json import Json
from aj.store import atomic


def put(path: Path, value: Json, *, clock: Clock = SYSTEM) -> None:
    """Keep an answer. A disk that refuses costs nothing but the next question."""
    with contextlib.suppress(AjError):
        atomic.make_folder(path.parent)
        atomic.write_json(path, {"at": clock.now(), "value": value})


def get(path: Path, *, clock: Clock = SYSTEM) -> tuple[Json, float] | None:
    """Return an answer and its age in seconds, or None. A clock that was set back makes nothing younger than now."""
    try:
        kept = json.loads(path.read_bytes())
        value, taken_at = kept["value"], float(kept["at"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return value, max(0.0, clock.now() - taken_at)
