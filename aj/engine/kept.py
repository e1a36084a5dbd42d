"""Answers that are kept: fresh for a while, then shown with their age while a new one is fetched.

A renewal that fails leaves the old answer where it is, and whoever gets that is told why. Nothing that is
kept is ever used where a submission is decided.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Generic, TypeVar, cast

from aj.base.clock import Clock
from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.store import cache
from aj.wire import codec

FORMAT = 1
PATIENCE_S = 2.0  # how long a caller waits for something newer than what is there; most answers come sooner
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Held(Generic[T_co]):
    """An answer with its age in seconds. `problem` is why it could not be renewed."""

    value: T_co
    age_s: float
    is_stale: bool = False
    problem: AjError | None = None


@dataclass(frozen=True)
class Wish:
    """How fresh an answer must be; `refresh` waits for a new one; `offline` is why nobody can be asked."""

    max_age_s: float
    refresh: bool = False
    offline: AjError | None = None


class Shelf:
    """Kept answers, a file each. Safe between threads: each is renewed by one of them at a time."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._renewals: dict[str, Future[object]] = {}
        self._threads = ThreadPoolExecutor(thread_name_prefix="kept")

    def get(self, kind: type[T], key: str, fetch: Callable[[], T], wish: Wish) -> Held[T]:
        """Return an answer. Raises what fetching raised when there is none to show."""
        held = self._read(kind, key)
        is_fresh = held is not None and held.age_s <= wish.max_age_s
        if held is not None and is_fresh and not wish.refresh:
            return held
        if wish.offline is not None:
            return _old(held, wish.offline)
        renewal = self._renewal(key, fetch)
        if held is None or wish.refresh:
            wait([renewal])
        else:
            self._wait_a_little(renewal)
        if not renewal.done():
            return _old(held, None)
        try:
            return Held(cast(T, renewal.result()), 0.0)
        except AjError as error:
            return _old(held, error)

    def _renewal(self, key: str, fetch: Callable[[], object]) -> Future[object]:
        """Begin to fetch a new answer, or join who does so already."""
        with self._lock:
            running = self._renewals.get(key)
            if running is None or running.done():
                running = self._threads.submit(self._renew, key, fetch)
                self._renewals[key] = running
            return running

    def _renew(self, key: str, fetch: Callable[[], object]) -> object:
        found = fetch()
        cache.put(self._file(key), {"format": FORMAT, "answer": codec.dump(found)}, clock=self._clock)
        return found

    def _wait_a_little(self, renewal: Future[object]) -> None:
        over = threading.Event()
        renewal.add_done_callback(lambda _: over.set())
        self._clock.wait(over, PATIENCE_S)

    def _read(self, kind: type[T], key: str) -> Held[T] | None:
        found = cache.get(self._file(key), clock=self._clock)
        if found is None or not isinstance(found[0], dict) or found[0].get("format") != FORMAT:
            return None
        try:
            return Held(codec.load(kind, found[0].get("answer"), lenient=True), found[1])
        except UserError:
            return None  # written by another release: as good as none

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def _old(held: Held[T] | None, problem: AjError | None) -> Held[T]:
    """Return what there was before. Raises the problem when there was nothing."""
    if held is not None:
        return Held(held.value, held.age_s, is_stale=True, problem=problem)
    assert problem is not None, "who waits for the first answer waits to its end"
    raise problem
