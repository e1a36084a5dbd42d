"""Programs that run for a submission: they end when they must, and at the latest together with this daemon."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aj.base import proc

GRACE_S = 5.0  # between TERM and KILL at the end of a program's time
LAST_GRACE_S = 2.5  # the same at the end of the daemon, which itself has 4 s then


class Programs:
    """The programs of one daemon. Safe between threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._is_over = False

    def run(
        self,
        argv: Sequence[str],
        hear: Callable[[str], None],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout_s: float,
    ) -> int:
        """Run one to its end and return its code, each line told as it comes.

        Raises TimeoutError, InterruptedError when the daemon ends, and OSError when it cannot start.
        """
        with self._changed:
            if self._is_over:
                raise InterruptedError("the daemon ends")
            self._running += 1
        try:
            return proc.follow(
                argv, hear, cwd=cwd, env=env, timeout_s=timeout_s, stop=lambda: self._is_over, grace_s=self._grace_s
            )
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """End all that run, and wait until they are gone."""
        with self._changed:
            self._is_over = True
            self._changed.wait_for(lambda: not self._running, LAST_GRACE_S + 1)

    def _grace_s(self) -> float:
        return LAST_GRACE_S if self._is_over else GRACE_S
