"""Time behind one object, so that hours can pass in a test without waiting."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What anyone may ask about time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Wait until the event is set or the time is over; True when it was set."""

    def sleep(self, seconds: float) -> None:
        """Do nothing for a while."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.wait(timeout_s)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


SYSTEM: Clock = SystemClock()


def rfc3339(seconds: float) -> str:
    """Write a moment as machines read it: `2026-01-31T12:00:00.123456Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_rfc3339(text: str) -> float:
    """Read what `rfc3339` wrote. Raises ValueError on anything else."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
