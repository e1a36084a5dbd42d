"""When the daemon leaves: what is under way, an idle time, a wish to stop, a second wish to stop now.

Leaving while idle is decided in one step with counting requests: a request that comes after the
decision is told so and nothing of it is done, so its sender starts the next daemon and loses nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator

from aj.base.clock import Clock
from aj.base.errors import DaemonError
from aj.daemon.engine import Engine
from aj.daemon.log import Log

SIGNALS = (signal.SIGTERM, signal.SIGINT)
RETIRE, FORCE, DRAINED = 201, 202, 203  # beside them on the bell; no signal has these numbers
LOOK_S = 5.0  # how often an idle time and the own socket are looked at


class Gate:
    """Counts what is under way, and shuts. Safe for several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[int, float] = {}
        self._number = 0
        self._changes = 0
        self._shut = False
        self._quiet_since = clock.monotonic()
        self.retiring = threading.Event()

    @contextlib.contextmanager
    def inside(self, *, mutates: bool = False) -> Iterator[None]:
        """Count one request from here to the end of the block. Raises DaemonError `leaving` when shut."""
        with self._lock:
            if self._shut:
                raise DaemonError("the daemon is just leaving", code="leaving", hint="try again")
            self._number += 1
            number = self._number
            self._under_way[number] = self._clock.monotonic()
            self._changes += mutates
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[number]
                self._changes -= mutates
                self._quiet_since = self._clock.monotonic()

    @property
    def requests(self) -> int:
        """How many requests are under way, open streams included."""
        with self._lock:
            return len(self._under_way)

    @property
    def changes(self) -> int:
        """How many of them may change something."""
        with self._lock:
            return self._changes

    def oldest_s(self) -> float | None:
        """Return how long the oldest request has been under way, in seconds."""
        with self._lock:
            started = min(self._under_way.values(), default=None)
        return None if started is None else self._clock.monotonic() - started

    def refuse_when_retiring(self) -> None:
        """Raise DaemonError `retiring` when no new work is taken."""
        if self.retiring.is_set():
            raise DaemonError("the daemon is stopping and takes no new work", code="retiring", hint="try again later")

    def quiet_s(self, engine: Engine) -> float:
        """Return for how long nothing at all has been going on, in seconds; 0 while something is."""
        if self.requests or not engine.busy().is_idle:
            return 0.0
        return self._clock.monotonic() - max(self._quiet_since, engine.last_activity())

    def shut_if_idle(self, engine: Engine) -> bool:
        """Take nothing more if nothing is under way; whether it is shut now."""
        with self._lock:
            if not self._under_way and engine.busy().is_idle:
                self._shut = True
            return self._shut

    def shut(self) -> None:
        """Take nothing more."""
        with self._lock:
            self._shut = True


class Lifecycle:
    """The main thread's part: it sleeps until there is a reason to leave."""

    def __init__(
        self, engine: Engine, gate: Gate, log: Log, *, idle_s: float, is_reachable: Callable[[], bool] = lambda: True
    ) -> None:
        self._engine = engine
        self._gate = gate
        self._log = log
        self._idle_s = idle_s
        self._is_reachable = is_reachable
        # A pipe, since the system itself writes into it when a signal comes, whichever thread gets that one.
        self._ear, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        self.drained = threading.Event()
        self.is_forced = False

    def obey_signals(self) -> None:
        """Make TERM and INT a wish to stop, and the second one a wish to stop now."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)

    def retire(self, *, force: bool) -> None:
        """Ask to leave: once nothing is being submitted, or at once."""
        self._ring(FORCE if force else RETIRE)

    def wait(self) -> str:
        """Sleep until it is time to leave; return why, in words for the log."""
        while True:
            word = self._listen()
            if word == FORCE or (word in SIGNALS and self._gate.retiring.is_set()):
                self.is_forced = True
                self._gate.shut()
                return "told to stop at once"
            if word == RETIRE or word in SIGNALS:
                self._begin_to_retire("told to stop")
            if not self._is_reachable():
                self._begin_to_retire("the socket was taken away")
            if self.drained.is_set():
                self._gate.shut()
                return "stopped"
            if self._is_idle_long_enough() and self._gate.shut_if_idle(self._engine):
                return f"idle for {self._idle_s:g} s"

    def _ring(self, word: int) -> None:
        with contextlib.suppress(BlockingIOError):  # thousands of words wait there already
            os.write(self._bell, bytes([word]))

    def _listen(self) -> int | None:
        """Return the next word: the number of a signal, or one of ours; None when there was none for a while."""
        pause_s = min(LOOK_S, max(self._idle_s / 4, 0.02)) if self._idle_s else LOOK_S
        ready, _, _ = select.select([self._ear], [], [], pause_s)
        return os.read(self._ear, 1)[0] if ready else None

    def _is_idle_long_enough(self) -> bool:
        if not self._idle_s or self._gate.retiring.is_set():
            return False
        return self._gate.quiet_s(self._engine) >= self._idle_s

    def _begin_to_retire(self, why: str) -> None:
        if self._gate.retiring.is_set():
            return
        self._gate.retiring.set()
        self._engine.begin_drain()
        self._log.info(f"{why}: no new work is taken")
        threading.Thread(target=self._drain, name="drain", daemon=True).start()

    def _drain(self) -> None:
        self._engine.drain(None)
        self.drained.set()
        self._ring(DRAINED)
