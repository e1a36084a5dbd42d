"""What happens to a submission while it is carried out, on its way to whoever follows it.

A service knows a submission by its AJ ID alone; here stands who hears of which.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from aj.model.step import Step


class Steps:
    """Who hears of which submission. Safe between threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._hearers: dict[str, Callable[[Step], None]] = {}

    @contextlib.contextmanager
    def hearing(self, aj_id: str, hear: Callable[[Step], None]) -> Iterator[None]:
        """Hear of a submission for the length of a block."""
        with self._guard:
            self._hearers[aj_id] = hear
        try:
            yield
        finally:
            with self._guard:
                del self._hearers[aj_id]

    def tell(self, aj_id: str, step: Step) -> None:
        """Tell a step; nobody may be there to hear it."""
        with self._guard:
            hear = self._hearers.get(aj_id)
        if hear is not None:
            hear(step)
