"""Answers that take their time: signs of life before a slow one, and events as they happen.

A sign of life is an interim `100 Continue`, which every HTTP client passes over. So the final status
is still free to say what really happened, however long it took.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Generic, TypeVar

from aj.base.clock import SYSTEM, Clock
from aj.daemon.engine import Subscription
from aj.daemon.front import ALIVE
from aj.wire import codec, paths
from aj.wire.messages import Notice

T = TypeVar("T")


class HungUp(Exception):
    """The caller is gone; nobody is left to answer."""


class Line:
    """The way back to one caller, for signs of life. `send` raises HungUp when the caller did."""

    def __init__(self, send: Callable[[bytes], None], clock: Clock, *, keepalive_s: float = paths.KEEPALIVE_S) -> None:
        self._send = send
        self._clock = clock
        self.keepalive_s = keepalive_s

    def hold(self, act: Callable[[], T]) -> T:
        """Do something slow that catches its own errors, showing signs of life meanwhile.

        It is done to its end also when the caller hangs up: then HungUp leaves here, and the act goes on.
        """
        box: _Box[T] = _Box(act)
        while not self._clock.wait(box.done, self.keepalive_s):
            self._send(ALIVE)
        return box.result()

    @contextlib.contextmanager
    def alive(self) -> Iterator[None]:
        """Show signs of life beside whatever goes on in the block, which alone may not write."""
        over = threading.Event()
        beating = threading.Thread(target=self._beat, args=(over,), name="alive", daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()

    def _beat(self, over: threading.Event) -> None:
        while not self._clock.wait(over, self.keepalive_s):
            try:
                self._send(ALIVE)
            except HungUp:
                return  # the answer will meet the same, and say so

    def poll(self, look: Callable[[float], T], is_over: Callable[[T], bool], timeout_s: float) -> T:
        """Look again and again, each time for a while, until it is over or the time is."""
        limit = self._clock.monotonic() + timeout_s
        while True:
            left_s = max(0.0, limit - self._clock.monotonic())
            found = look(min(left_s, self.keepalive_s))
            if is_over(found) or self._clock.monotonic() >= limit:
                return found
            self._send(ALIVE)


class _Box(Generic[T]):
    """One act in a thread of its own, with what came of it. The act catches its own errors."""

    def __init__(self, act: Callable[[], T]) -> None:
        self.done = threading.Event()
        self._act = act
        self._found: list[T] = []
        threading.Thread(target=self._run, name="change", daemon=True).start()

    def _run(self) -> None:
        try:
            self._found.append(self._act())
        finally:
            self.done.set()

    def result(self) -> T:
        return self._found[0]


def events(
    subscription: Subscription, instance: str, keepalive_s: float, *, timeout_s: float | None = None
) -> Generator[bytes, None, None]:
    """Yield events as server-sent events, a comment when nothing happened for a while, until the time is over."""
    limit = math.inf if timeout_s is None else SYSTEM.monotonic() + timeout_s
    try:
        yield b": open\n\n"
        while not subscription.is_closed and (left_s := limit - SYSTEM.monotonic()) > 0:
            notice = subscription.next(min(keepalive_s, left_s))
            yield encode(notice, instance) if notice is not None else b": alive\n\n"
    finally:
        subscription.close()


def encode(notice: Notice, instance: str) -> bytes:
    """Write one event: its number as id, its topic as event, the rest as one line of JSON.

    The id names the daemon too: numbers begin anew with the next one.
    """
    data = json.dumps(codec.dump(notice), separators=(",", ":"))
    return f"id: {instance}-{notice.number}\nevent: {notice.topic}\ndata: {data}\n\n".encode("ascii")


def number(event_id: str | None, instance: str) -> int | None:
    """Return which event a listener had last: 0 when it heard another daemon, None when it is new."""
    if not event_id:
        return None
    whose, _, word = event_id.rpartition("-")
    return int(word) if whose == instance and word.isascii() and word.isdigit() else 0
