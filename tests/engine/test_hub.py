"""Events reach whoever listens, in order; a slow listener is told what it lost."""

from __future__ import annotations

import threading
import time

import pytest

from aj.engine import hub
from aj.engine.hub import Hub, Listener
from aj.wire.messages import Notice


def topics(listener: Listener) -> list[tuple[int, str, int]]:
    found = []
    while event := listener.next(0):
        found.append((event.number, event.topic, event.dropped))
    return found


def test_events_come_in_order_to_all_who_want_them() -> None:
    house = Hub()
    all_of_it, of_one = house.subscribe(), house.subscribe("a")
    house.publish("x", "a", {"n": 1})
    house.publish("y", "b", {})
    house.publish("z", "a", {})
    assert all_of_it.next(0) == Notice(1, "x", "a", {"n": 1})
    assert topics(all_of_it) == [(2, "y", 0), (3, "z", 0)]
    assert topics(of_one) == [(1, "x", 0), (3, "z", 0)]


@pytest.mark.rule("C-216")
def test_a_slow_listener_is_told_how_many_it_lost_and_holds_up_nobody() -> None:
    house = Hub()
    slow, fast = house.subscribe(), house.subscribe()
    for number in range(hub.WAITING + 10):
        house.publish(str(number), None, {})
        assert fast.next(0) is not None
    found = topics(slow)
    assert len(found) == hub.WAITING
    assert found[0] == (11, "10", 10)
    assert [dropped for _, _, dropped in found[1:]] == [0] * (hub.WAITING - 1)


@pytest.mark.rule("C-216")
def test_a_listener_that_comes_back_goes_on_where_it_was() -> None:
    house = Hub()
    for number in range(1, 6):
        house.publish(str(number), "a" if number % 2 else "b", {})
    assert topics(house.subscribe(None, 3)) == [(4, "4", 0), (5, "5", 0)]
    assert topics(house.subscribe("a", 1)) == [(3, "3", 0), (5, "5", 0)]
    assert topics(house.subscribe(None, 5)) == []
    assert topics(house.subscribe(None)) == []
    assert len(topics(house.subscribe(None, 99))) == 5  # a number of an earlier daemon


@pytest.mark.rule("C-216")
def test_what_is_no_longer_remembered_is_told_as_lost() -> None:
    house = Hub()
    for number in range(1, hub.REMEMBERED + 21):
        house.publish(str(number), None, {})
    found = topics(house.subscribe(None, 5))
    assert found[0] == (21, "21", 15)


def test_a_closed_listener_gets_nothing_more() -> None:
    house = Hub()
    listener = house.subscribe()
    listener.close()
    listener.close()
    house.publish("x", None, {})
    assert listener.next(0) is None
    assert listener.is_closed


def test_a_waiting_reader_is_woken_by_an_event_and_by_the_end() -> None:
    house = Hub()
    listener = house.subscribe()
    found: list[Notice | None] = []

    def listen() -> None:
        found.extend([listener.next(20), listener.next(20)])

    reader = threading.Thread(target=listen)
    began = time.monotonic()
    reader.start()
    house.publish("x", None, {})
    house.close()
    reader.join(20)
    assert [event.topic if event else None for event in found] == ["x", None]
    assert time.monotonic() - began < 15
    assert house.subscribe().is_closed
