"""Many objects at once: each is tried again while another try may help, and all stop when one is told to.

What fails for good is told beside what worked; nothing is lost in silence.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Generic, TypeVar

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import AjError, AuthError, Refused, Unavailable
from aj.base.noun import dataclass
from aj.net import retry

WIDTH = 8  # objects at once: the library keeps ten connections of one line open
T = TypeVar("T")
P = TypeVar("P")
V = TypeVar("V")


class Stopped(AjError):
    """A transfer was told to stop before it was through."""

    default_code = "stopped"


@dataclass
class Pace:
    """How long and how wide a transfer works. `stop` ends it; `until` does, by the monotonic clock."""

    clock: Clock = SYSTEM
    stop: threading.Event = field(default_factory=threading.Event)
    until: float | None = None
    width: int = WIDTH

    def check(self) -> None:
        """Raise Stopped when it is over."""
        if self.stop.is_set():
            raise Stopped("the transfer was stopped")
        if self.until is not None and self.clock.monotonic() >= self.until:
            raise Stopped("the time for the transfer is over")

    def insist(self, act: Callable[[], T]) -> T:
        """Do what may be repeated, four times while another try may help. Raises Stopped, and what `act` raises."""
        for pause_s in retry.PAUSES_S:
            self.check()
            try:
                return act()
            except Unavailable as error:
                if not retry.is_passing(error) or self.clock.wait(self.stop, retry.pause(error, pause_s)):
                    raise
        self.check()
        return act()


@dataclass(frozen=True)
class Failed(Generic[P]):
    """A part that did not work, and why."""

    part: P
    error: AjError


@dataclass(frozen=True)
class Carried(Generic[P, V]):
    """What came of a transfer: what was done in the order of the parts, and of the rest the real errors first."""

    done: tuple[V, ...]
    failed: tuple[Failed[P], ...] = ()

    def strictly(self) -> tuple[V, ...]:
        """Return what was done when all was. Raises the first error."""
        if self.failed:
            raise self.failed[0].error
        return self.done


def carry(parts: Iterable[P], act: Callable[[P], V], pace: Pace) -> Carried[P, V]:
    """Do an act for every part, several at once. What concerns all parts alike ends it at the first of them.

    Raises Stopped.
    """
    over = threading.Event()

    def one(part: P) -> V | Failed[P]:
        if over.is_set():
            return Failed(part, Stopped("the transfer was given up"))
        try:
            return pace.insist(lambda: act(part))
        except AjError as error:
            if _concerns_all(error):
                over.set()
            return Failed(part, error)

    with ThreadPoolExecutor(pace.width, thread_name_prefix="transfer") as threads:
        found = list(threads.map(one, parts))
    failed = tuple(answer for answer in found if isinstance(answer, Failed))
    if failed and all(isinstance(one.error, Stopped) for one in failed):
        raise failed[0].error
    done = tuple(answer for answer in found if not isinstance(answer, Failed))
    return Carried(done, tuple(sorted(failed, key=lambda one: isinstance(one.error, Stopped))))


def _concerns_all(error: AjError) -> bool:
    """Tell whether the next part would fail the same way: no network, no right, no time."""
    if isinstance(error, Refused):
        return error.code == "forbidden"
    return isinstance(error, Unavailable | AuthError | Stopped) or error.code in ("no-such-bucket", "cannot-write")


class Progress:
    """Bytes and objects that went over, counted. Safe between threads. `told` is called at every change."""

    def __init__(self, told: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._told = told
        self.total_objects = 0
        self.total_bytes = 0
        self.objects = 0
        self.bytes = 0
        self.skipped = 0

    def expect(self, objects: int, size_bytes: int) -> None:
        """Say how much there will be."""
        with self._lock:
            self.total_objects += objects
            self.total_bytes += size_bytes
        self._told()

    def moved(self, count: int) -> None:
        """Count bytes; below zero those that have to go again."""
        with self._lock:
            self.bytes += count
        self._told()

    def done(self) -> None:
        """Count an object whose bytes went over."""
        with self._lock:
            self.objects += 1
        self._told()

    def skip(self, objects: int, size_bytes: int) -> None:
        """Count objects that were there already."""
        with self._lock:
            self.objects += objects
            self.skipped += objects
            self.bytes += size_bytes
        self._told()
