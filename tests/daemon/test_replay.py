"""The same key and body again is answered, not done again."""

from __future__ import annotations

import threading

import pytest

from aj.base.errors import Refused
from aj.daemon import replay
from aj.daemon.front import Reply
from aj.daemon.replay import Replays


@pytest.mark.rule("C-209")
def test_a_change_is_made_once_a_key() -> None:
    made: list[int] = []
    replays = Replays()

    def act() -> Reply:
        made.append(1)
        return Reply(200, len(made))

    answers = [replays.once("k", b"same", act) for _ in range(3)]
    assert [reply.document for reply in answers] == [1, 1, 1]
    assert replays.once("other", b"same", act).document == 2


@pytest.mark.rule("C-209")
def test_the_same_key_for_something_else_is_refused() -> None:
    replays = Replays()
    replays.once("k", b"one", lambda: Reply(200, None))
    with pytest.raises(Refused) as error:
        replays.once("k", b"two", lambda: Reply(200, None))
    assert error.value.code == "key-reused"


@pytest.mark.rule("C-209")
def test_a_second_call_waits_for_the_first() -> None:
    replays, begun, go = Replays(), threading.Event(), threading.Event()
    answers: list[Reply] = []

    def slow() -> Reply:
        begun.set()
        assert go.wait(10)
        return Reply(200, "first")

    threads = [
        threading.Thread(target=lambda act=act: answers.append(replays.once("k", b"x", act)))
        for act in (slow, lambda: Reply(200, "second"))
    ]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(10)
    assert [reply.document for reply in answers] == ["first", "first"]


def test_a_change_that_broke_off_may_be_tried_again() -> None:
    replays = Replays()

    def breaks() -> Reply:
        raise KeyError("x")

    with pytest.raises(KeyError):
        replays.once("k", b"x", breaks)
    assert replays.once("k", b"x", lambda: Reply(200, "done")).document == "done"


def test_old_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "KEPT", 3)
    replays = Replays()
    for number in range(10):
        replays.once(str(number), b"x", lambda number=number: Reply(200, number))
    assert replays.once("9", b"x", lambda: Reply(200, "new")).document == 9
    assert replays.once("0", b"x", lambda: Reply(200, "new")).document == "new"
