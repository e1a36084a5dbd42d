"""How far an upload of code is, told a few times a second, and what came of it."""

from __future__ import annotations

from collections.abc import Callable

from aj.base import units
from aj.base.clock import Clock
from aj.model.step import Kind, Step

EVERY_S = 0.25  # more often than anyone can read
Tell = Callable[[Step], None]


class Telling:
    """Tells of one upload."""

    def __init__(self, clock: Clock, tell: Tell) -> None:
        self._clock = clock
        self._tell = tell
        self._next_at = 0.0

    def begin(self, words: str) -> None:
        """Tell what is done first."""
        self._tell(Step(Kind.UPLOAD, words))

    def moved(self, done: int, total: int, skipped: int) -> None:
        """Tell how many bytes are there, of how many, and how many of them were before."""
        now = self._clock.monotonic()
        if now >= self._next_at and done < total:
            self._next_at = now + EVERY_S
            self._tell(Step(Kind.UPLOAD, f"uploading code, {units.size(total)}", done, total, skipped, "code"))

    def end(self, total: int, sent: int, skipped: int) -> None:
        """Tell that all bytes are there."""
        resumed = f", {units.size(skipped)} were there" if skipped else ""
        is_reused = skipped == total
        words = "reused (0 B sent)" if is_reused else f"uploaded {units.size(sent)}{resumed}"
        self._tell(Step(Kind.UPLOAD, f"code: {words}", total, total, skipped, "code"))

    def warn(self, words: str) -> None:
        """Tell what a user should know."""
        self._tell(Step(Kind.WARNING, words))
