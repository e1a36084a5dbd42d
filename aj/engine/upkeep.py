"""Upkeep of jobs on clusters: signatures renewed before they end, and nothing left there that nobody needs.

It goes by what was noted on disk before it was made on a cluster, so it also finds what a killed daemon left. Where
nothing is noted, nothing is asked and no library of a cluster is imported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from aj.base.clock import Clock
from aj.base.errors import AjError
from aj.store.traces import Trace, Traces

EVERY_S = 600.0  # a signature lives for hours, and is renewed when a quarter of that is left
SOON_S = 2 * EVERY_S  # before its end, however short it lives: one round may fail, and pods see it after a minute


class Care(Protocol):
    """What can be done about one trace."""

    def tend(self, trace: Trace) -> None:
        """Do what is due about it. Raises AjError."""


class Upkeep:
    """Looks after all traces, now and every ten minutes, in a thread of its own."""

    def __init__(self, traces: Traces, clock: Clock, care: Callable[[], Care], log: Callable[[str], None]) -> None:
        self._traces = traces
        self._clock = clock
        self._care = care
        self._log = log
        self._stop = threading.Event()
        self._told: dict[str, str] = {}

    def start(self) -> None:
        """Begin with what an earlier daemon left."""
        threading.Thread(target=self._rounds, name="upkeep", daemon=True).start()

    def stop(self) -> None:
        """End the looking; what is on its way ends by itself."""
        self._stop.set()

    def round(self) -> None:
        """Look after every trace once; one that cannot be reached is told once, and tried again."""
        for trace in self._traces.all():
            if self._stop.is_set():
                return
            try:
                self._care().tend(trace)
            except AjError as error:
                self._tell(trace, str(error))
            else:
                self._told.pop(trace.name, None)

    def _rounds(self) -> None:
        while not self._stop.is_set():
            self.round()
            self._clock.wait(self._stop, EVERY_S)

    def _tell(self, trace: Trace, words: str) -> None:
        if self._told.get(trace.name) != words:
            self._told[trace.name] = words
            self._log(f"{trace.kind} of job {trace.job} in {trace.context}/{trace.namespace}: {words}")
