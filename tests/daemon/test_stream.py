"""Slow answers show signs of life; events are written as they come and taken up where they ended."""

from __future__ import annotations

import json
import threading

import pytest

from aj.base.clock import SYSTEM
from aj.daemon import stream
from aj.daemon.stream import HungUp, Line
from aj.engine.hub import Hub
from tests.conftest import MovedClock


@pytest.mark.rule("C-210")
def test_something_slow_shows_signs_of_life(real_clock: None) -> None:
    sent: list[bytes] = []
    go = threading.Event()

    def send(data: bytes) -> None:
        sent.append(data)
        if len(sent) == 3:
            go.set()

    assert Line(send, SYSTEM, keepalive_s=0.01).hold(lambda: go.wait(10)) is True
    assert len(sent) >= 3 and set(sent) == {b"HTTP/1.1 100 Continue\r\n\r\n"}


def test_something_slow_goes_on_when_the_caller_hangs_up(real_clock: None) -> None:
    go, done = threading.Event(), threading.Event()

    def act() -> None:
        go.wait(10)
        done.set()

    def send(data: bytes) -> None:
        raise HungUp

    with pytest.raises(HungUp):
        Line(send, SYSTEM, keepalive_s=0.01).hold(act)
    assert not done.is_set()
    go.set()
    assert done.wait(10)


@pytest.mark.rule("C-210")
def test_a_wait_looks_in_slices_and_ends_with_its_time(clock: MovedClock) -> None:
    asked: list[float] = []
    sent: list[bytes] = []

    def look(timeout_s: float) -> int:
        asked.append(timeout_s)
        clock.move(timeout_s)
        return len(asked)

    assert Line(sent.append, clock).poll(look, lambda found: False, 25) == 3
    assert asked == [10, 10, 5] and len(sent) == 2
    assert Line(sent.append, clock).poll(look, lambda found: True, 25) == 4
    assert Line(sent.append, clock).poll(look, lambda found: False, 0) == 5
    assert asked[-1] == 0


@pytest.mark.rule("C-216")
def test_events_are_written_as_they_come() -> None:
    hub = Hub()
    pieces = stream.events(hub.subscribe(), "abc", 0.01)
    assert next(pieces) == b": open\n\n"
    assert next(pieces) == b": alive\n\n"
    hub.publish("ticket", "p", {"name": "ü\n"})
    lines = next(pieces).decode().split("\n")
    assert lines[:2] == ["id: abc-1", "event: ticket"] and lines[3:] == ["", ""]
    assert json.loads(lines[2].removeprefix("data: ")) == {
        "number": 1,
        "topic": "ticket",
        "project": "p",
        "payload": {"name": "ü\n"},
        "dropped": 0,
    }
    hub.close()
    assert list(pieces) in ([], [b": alive\n\n"])


@pytest.mark.rule("C-216")
def test_a_listener_is_taken_up_where_it_ended() -> None:
    assert stream.number(None, "abc") is None
    assert stream.number("abc-12", "abc") == 12
    assert stream.number("another-12", "abc") == 0
    assert stream.number("abc-x", "abc") == 0
    assert stream.number("abc-٣", "abc") == 0
