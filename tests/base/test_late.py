"""What is made at the first look: once, by whoever comes first, and again after a failure."""

from __future__ import annotations

import threading

import pytest

from aj.base.late import Shelf, late


class Thing:
    def __init__(self) -> None:
        self.word = "made"


def test_it_is_made_at_the_first_look_and_once() -> None:
    made: list[Thing] = []

    def make() -> Thing:
        made.append(Thing())
        return made[-1]

    thing = late(make)
    assert made == []
    threads = [threading.Thread(target=lambda: thing.word) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert thing.word == "made" and len(made) == 1


def test_a_making_that_failed_is_tried_again() -> None:
    tries: list[int] = []

    def make() -> Thing:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not now")
        return Thing()

    thing = late(make)
    with pytest.raises(OSError, match="not now"):
        _ = thing.word
    assert thing.word == "made"


def test_a_shelf_tells_what_it_has_and_makes_only_what_is_taken() -> None:
    made: list[str] = []

    def maker(name: str) -> str:
        made.append(name)
        return name.upper()

    shelf = Shelf({name: lambda name=name: maker(name) for name in ("a", "b")})  # type: ignore[misc]
    assert "a" in shelf and "c" not in shelf and list(shelf) == ["a", "b"] and len(shelf) == 2
    assert made == []
    assert shelf["b"] == shelf["b"] == "B" and shelf.get("c") is None
    assert made == ["b"]
    with pytest.raises(KeyError):
        shelf["c"]
