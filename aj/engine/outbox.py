"""Notices on their way out, apart from whoever looks: one lane for each way, so that a slow one delays itself alone.

What is put into a lane leaves in that order and never two at once. The number of threads is bounded, and
the end waits for nothing longer than it is told to.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

WORKERS = 8  # lanes that may be served at once

Errand = Callable[[], None]


class Outbox:
    """Runs errands by lanes. Safe between threads. An errand raises nothing."""

    def __init__(self) -> None:
        self._guard = threading.Condition()
        self._lanes: dict[str, deque[Errand]] = {}  # every lane in which one waits or runs, the longest untouched first
        self._served: set[str] = set()
        self._workers = 0
        self._is_shut = False

    def put(self, lane: str, errand: Errand) -> None:
        """Let an errand run when those before it in its lane are done; after `stop` never."""
        with self._guard:
            if self._is_shut:
                return
            self._lanes.setdefault(lane, deque()).append(errand)
            if lane in self._served or self._workers >= WORKERS:
                return
            self._workers += 1
        threading.Thread(target=self._serve, name="notices", daemon=True).start()

    def stop(self, limit_s: float) -> None:
        """Begin no further errand, and wait this long at most for those that run."""
        with self._guard:
            self._is_shut = True
            for waiting in self._lanes.values():
                waiting.clear()
            self._guard.wait_for(lambda: not self._served, limit_s)

    def _serve(self) -> None:
        """Run errands until none waits in a lane that nobody serves."""
        while True:
            with self._guard:
                lane = next(
                    (name for name, waiting in self._lanes.items() if waiting and name not in self._served), None
                )
                if lane is None:
                    self._workers -= 1
                    return
                errand = self._lanes[lane].popleft()
                self._served.add(lane)
            try:
                errand()
            finally:
                self._leave(lane)

    def _leave(self, lane: str) -> None:
        with self._guard:
            self._served.discard(lane)
            waiting = self._lanes.pop(lane)
            if waiting:
                self._lanes[lane] = waiting
            self._guard.notify_all()
