"""Asking again: a transport around another one that repeats questions, and never a change."""

from __future__ import annotations

import random
from collections.abc import Callable

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import Unavailable
from aj.base.noun import dataclass
from aj.net import refusal
from aj.net.http import NO_HOST, Request, Response, Transport

PAUSES_S = (0.5, 2.0, 8.0)  # before the second, third and fourth try
JITTER = 0.3  # of a pause, so that many clients do not come back at once
LONGEST_S = 60.0  # a service that wants more is reported: somebody may rather come back later
PASSING = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Retrying:
    """Asks up to four times while another try may help."""

    inner: Transport
    clock: Clock = SYSTEM
    pauses_s: tuple[float, ...] = PAUSES_S
    chance: Callable[[], float] = random.random

    def ask(self, request: Request) -> Response:
        """Ask until there is an answer, or no more pause is left. Raises as the inner transport.

        A name that is not found is looked up once more and no further: it is wrong, or this machine is offline.
        """
        for count, pause_s in enumerate(self.pauses_s):
            try:
                return self.inner.ask(request)
            except Unavailable as error:
                if not is_passing(error) or (error.code == NO_HOST and count):
                    raise
                self.clock.sleep(pause(error, pause_s, self.chance))
        return self.inner.ask(request)

    def send(self, request: Request) -> Response:
        """Send a change once. Raises as the inner transport."""
        return self.inner.send(request)


def pause(error: Unavailable, pause_s: float, chance: Callable[[], float] = random.random) -> float:
    """Return how many seconds to wait before another try: a little more than `pause_s`, or what was asked for."""
    return max(pause_s * (1 + JITTER * chance()), _asked_s(error))


def is_passing(error: Unavailable) -> bool:
    """Tell whether the same question may find an answer within a minute."""
    status = refusal.status_of(error)
    if status is None:
        return error.code != "untrusted"
    return status in PASSING and _asked_s(error) <= LONGEST_S


def _asked_s(error: Unavailable) -> float:
    """The pause that the service asked for; 0 for none."""
    asked_s = error.details.get("retry_after_s")
    return float(asked_s) if isinstance(asked_s, int | float) else 0.0
