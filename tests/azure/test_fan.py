"""Many questions at once: in order, and every failure beside the answers."""

from __future__ import annotations

import threading

import pytest

from aj.azure import fan
from aj.azure.fan import Failure, Gathered, gather
from aj.base.errors import NotFound, RemoteError, Unavailable
from aj.net.refusal import Unauthorized


@pytest.mark.rule("A-009")
def test_answers_keep_the_order_of_their_questions() -> None:
    found = gather(range(100), lambda n: n * n)
    assert found == Gathered(tuple(n * n for n in range(100)))
    assert gather([], lambda n: n) == Gathered(())


@pytest.mark.rule("A-009")
def test_sixteen_are_asked_at_once_and_no_more() -> None:
    lock, all_here = threading.Lock(), threading.Barrier(16, timeout=20)
    now: list[int] = [0, 0]

    def ask(part: int) -> int:
        with lock:
            now[0] += 1
            now[1] = max(now)
        if part < 16:
            all_here.wait()  # broken unless sixteen are here at once
        with lock:
            now[0] -= 1
        return part

    assert gather(range(64), ask).values == tuple(range(64))
    assert now[1] == 16


@pytest.mark.rule("A-009")
def test_a_failure_stands_beside_the_answers() -> None:
    lost = Unavailable("broke")

    def ask(part: str) -> str:
        if part == "b":
            raise lost
        return part.upper()

    found = gather(["a", "b", "c"], ask, name=lambda part: f"part {part}")
    assert found == Gathered(("A", "C"), (Failure("part b", lost),))
    assert found.made(str.lower) == Gathered(("a", "c"), (Failure("part b", lost),))


@pytest.mark.rule("A-009")
def test_a_fault_of_our_own_is_no_failure_of_a_part() -> None:
    with pytest.raises(ZeroDivisionError):
        gather([1, 0], lambda n: 1 // n)


@pytest.mark.rule("A-046")
def test_strictly_means_all_or_an_error_that_names_each_part() -> None:
    assert Gathered((1, 2)).strictly("list things") == (1, 2)
    failures = (Failure("sub-a", Unavailable("broke", hint="wait")), Failure("sub-b", NotFound("gone")))
    with pytest.raises(Unavailable) as error:
        Gathered((1,), failures).strictly("list things")
    assert error.value.message == "could not list things: 2 parts gave no answer: sub-a: broke; sub-b: gone"
    assert error.value.hint == "wait"
    assert error.value.__cause__ is failures[0].error


def test_an_error_of_our_own_making_becomes_its_plain_kind() -> None:
    failure = Failure("a", Unauthorized("no", challenge=None, details={}))
    with pytest.raises(
        RemoteError if fan.type_of(failure.error) is RemoteError else fan.type_of(failure.error)
    ) as error:
        Gathered((), (failure,)).strictly("ask")
    assert type(error.value).__name__ == "AuthError"
