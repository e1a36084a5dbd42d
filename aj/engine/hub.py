"""Events on their way out: whoever changes something publishes, whoever listens has a queue of his own.

A listener that is too slow loses the oldest events and is told how many. Nobody who publishes waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from aj.model.json import Json
from aj.wire.messages import Notice

WAITING = 256  # events one listener may be behind
REMEMBERED = 256  # events kept for a listener that comes back after a lost connection


class Listener:
    """One reader of events. `close` it when done."""

    def __init__(self, hub: Hub, project: str | None) -> None:
        self._hub = hub
        self._project = project
        self._events: deque[Notice] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether no further event will come."""
        return self._is_closed

    def next(self, timeout_s: float) -> Notice | None:
        """Wait for the next event; None when there was none in time, or no more will come.

        Its `dropped` says how many are missing before it.
        """
        with self._changed:
            self._changed.wait_for(lambda: bool(self._events) or self._is_closed, timeout_s)
            if not self._events:
                return None
            lost, self._dropped = self._dropped, 0
            return replace(self._events.popleft(), dropped=lost)

    def close(self) -> None:
        """Stop listening."""
        self._hub.forget(self)
        self.end()

    def end(self) -> None:
        """Wake the reader: nothing more will come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def wants(self, event: Notice) -> bool:
        """Tell whether this listener asked for the event's project."""
        return self._project is None or self._project == event.project

    def give(self, event: Notice) -> None:
        """Take an event; the oldest goes when there is no room."""
        with self._changed:
            if len(self._events) >= WAITING:
                self._events.popleft()
                self._dropped += 1
            self._events.append(event)
            self._changed.notify_all()

    def lose(self, count: int) -> None:
        """Note events that are gone for good."""
        with self._changed:
            self._dropped += count


class Hub:
    """Where events are published and listened to. Safe between threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._listeners: list[Listener] = []
        self._latest: deque[Notice] = deque(maxlen=REMEMBERED)
        self._count = 0
        self._is_closed = False
        self.heard: Callable[[], None] = lambda: None  # called after each event, and must not wait

    def publish(self, topic: str, project_key: str | None, payload: Mapping[str, Json]) -> None:
        """Tell everybody who listens."""
        with self._guard:
            self._count += 1
            event = Notice(self._count, topic, project_key, payload)
            self._latest.append(event)
            for listener in self._listeners:
                if listener.wants(event):
                    listener.give(event)
        self.heard()

    def subscribe(self, project_key: str | None = None, after: int | None = None) -> Listener:
        """Listen to one project or all: from now on, or from after event number `after`.

        A number that this daemon has not reached comes from an earlier one: then all that is remembered
        is given.
        """
        with self._guard:
            listener = Listener(self, project_key)
            if after is not None:
                self._catch_up(listener, after if after <= self._count else 0)
            if self._is_closed:
                listener.end()
            self._listeners.append(listener)
            return listener

    def _catch_up(self, listener: Listener, since: int) -> None:
        if self._latest:
            listener.lose(max(0, self._latest[0].number - 1 - since))
        for event in self._latest:
            if event.number > since and listener.wants(event):
                listener.give(event)

    def forget(self, listener: Listener) -> None:
        """Give a listener nothing more."""
        with self._guard:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def close(self) -> None:
        """End every listener."""
        with self._guard:
            self._is_closed = True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.end()
