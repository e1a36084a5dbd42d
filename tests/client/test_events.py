"""Events: heard as they happen, taken up again after a lost connection, what was missed is counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from aj.base.errors import DaemonError
from aj.client import events
from aj.client.client import Client
from aj.client.events import Events
from aj.engine import hub
from aj.wire import paths
from tests.daemon.inside import Inside


@pytest.fixture
def client(hasty: Inside) -> Iterator[Client]:
    with Client(hasty.home.settings) as client:
        yield client


def when_listening(inside: Inside, act: Callable[[], object]) -> None:
    """Act as soon as somebody listens."""

    def run() -> None:
        waiting = threading.Event()
        while not inside.engine.hub._listeners:
            waiting.wait(0.01)
        act()

    threading.Thread(target=run, daemon=True).start()


@pytest.mark.rule("C-216")
def test_events_are_heard_of_one_project_or_of_all(client: Client, hasty: Inside) -> None:
    publish = hasty.engine.hub.publish
    when_listening(hasty, lambda: [publish("ticket", key, {"n": key}) for key in ("a", "b", "a")])
    heard = client.events.listen(timeout_s=10)
    assert [next(heard).project for _ in range(3)] == ["a", "b", "a"]


@pytest.mark.rule("C-216")
def test_a_lost_stream_is_taken_up_where_it_ended(
    client: Client, hasty: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PAUSE_S", 0.01)
    engine = hasty.engine
    when_listening(hasty, lambda: engine.hub.publish("x", None, {"n": 1}))
    heard = client.events.listen(timeout_s=20)
    assert next(heard).payload == {"n": 1}
    for listener in list(engine.hub._listeners):
        engine.hub.forget(listener)
        listener.end()
    engine.hub.publish("x", None, {"n": 2})
    assert next(heard).payload == {"n": 2}


@pytest.mark.rule("C-216")
def test_a_slow_reader_is_told_what_it_missed(client: Client, hasty: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "WAITING", 5)
    engine = hasty.engine
    payload = {"fill": "x" * 200_000}  # more than a socket holds, so the reader is behind
    when_listening(hasty, lambda: [engine.hub.publish("x", None, payload) for _ in range(40)])
    heard = client.events.listen(timeout_s=20)
    first = next(heard)
    threading.Event().wait(0.3)
    rest = [first]
    while rest[-1].number < 40:
        rest.append(next(heard))
    assert sum(notice.dropped for notice in rest) + len(rest) == 40
    assert sum(notice.dropped for notice in rest) > 0


def test_listening_ends_with_its_time(client: Client, hasty: Inside) -> None:
    assert list(client.events.listen(timeout_s=0.2)) == []


@pytest.mark.rule("C-210")
def test_a_silent_stream_is_a_hung_daemon(client: Client, hasty: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    client.queue.list()
    hasty.server.keepalive_s = 10
    monkeypatch.setattr(paths, "SILENCE_S", 0.1)
    with pytest.raises(DaemonError) as error:
        list(Events(client._line).listen(timeout_s=5))
    assert error.value.code == "hung"
