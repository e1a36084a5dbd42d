"""Asking again: when, how long after, and never a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base.errors import AjError, OutcomeUnknown, Refused, Unavailable
from aj.net import refusal
from aj.net.http import NO_HOST, Request, Response
from aj.net.retry import JITTER, LONGEST_S, PAUSES_S, Retrying
from tests.conftest import MovedClock

REQUEST = Request("GET", "https://a.example/x", "say hello")
HELLO = Response(200, {}, b"{}")


@dataclass
class Scripted:
    """A transport that fails as it is told, and then answers."""

    failures: list[AjError]
    calls: list[str] = field(default_factory=list)

    def _next(self, verb: str) -> Response:
        self.calls.append(verb)
        if self.failures:
            raise self.failures.pop(0)
        return HELLO

    def ask(self, request: Request) -> Response:
        return self._next("ask")

    def send(self, request: Request) -> Response:
        return self._next("send")


def answered(status: int, *, now: float = 0.0, **headers: str) -> AjError:
    """The error of an answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return refusal.error(REQUEST, status, named, b"", now=now)


def lost() -> Unavailable:
    return Unavailable("the connection broke")


def asking(failures: list[AjError], clock: MovedClock, chance: Callable[[], float] = lambda: 0.0) -> Retrying:
    return Retrying(Scripted(failures), clock, chance=chance)


@pytest.mark.rule("A-002")
@pytest.mark.parametrize("status", [None, 408, 429, 500, 502, 503, 504])
def test_a_question_is_asked_four_times_with_growing_pauses(clock: MovedClock, status: int | None) -> None:
    failures = [lost() if status is None else answered(status) for _ in range(3)]
    transport = asking(failures, clock)
    assert transport.ask(REQUEST) is HELLO
    assert clock.slept == [0.5, 2.0, 8.0]
    last = [lost() if status is None else answered(status) for _ in range(5)]
    scripted = Scripted(list(last))
    with pytest.raises(Unavailable) as error:
        Retrying(scripted, clock).ask(REQUEST)
    assert error.value is last[3]
    assert scripted.calls == ["ask"] * 4


@pytest.mark.rule("A-002")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 412, 501, 505, 507])
def test_what_another_try_cannot_help_is_asked_once(clock: MovedClock, status: int) -> None:
    scripted = Scripted([answered(status)])
    with pytest.raises(AjError):
        Retrying(scripted, clock).ask(REQUEST)
    assert scripted.calls == ["ask"]
    assert clock.slept == []


def test_an_untrusted_certificate_is_not_asked_again(clock: MovedClock) -> None:
    scripted = Scripted([Unavailable("the certificate is not trusted", code="untrusted")])
    with pytest.raises(Unavailable):
        Retrying(scripted, clock).ask(REQUEST)
    assert scripted.calls == ["ask"]


@pytest.mark.rule("A-002")
@settings(max_examples=40)
@given(st.floats(0, 1, exclude_max=True))
def test_pauses_vary_by_less_than_a_third(chance: float) -> None:
    clock = MovedClock()
    asking([lost(), lost(), lost()], clock, lambda: chance).ask(REQUEST)
    assert all(pause <= slept <= pause * (1 + JITTER) for pause, slept in zip(PAUSES_S, clock.slept))


@pytest.mark.rule("A-002")
def test_a_longer_pause_that_is_asked_for_wins(clock: MovedClock) -> None:
    at = format_datetime(datetime.fromtimestamp(clock.at + 30, UTC), usegmt=True)
    failures = [
        answered(429, retry_after="7"),
        answered(503, retry_after="1"),
        answered(503, now=clock.at, retry_after=at),
    ]
    asking(failures, clock).ask(REQUEST)
    assert clock.slept == [7.0, 2.0, 30.0]


@pytest.mark.rule("A-002")
def test_a_pause_above_a_minute_is_reported_and_not_waited_for(clock: MovedClock) -> None:
    scripted = Scripted([answered(429, retry_after="60"), answered(429, retry_after="61")])
    with pytest.raises(Unavailable) as error:
        Retrying(scripted, clock).ask(REQUEST)
    assert clock.slept == [LONGEST_S]
    assert error.value.hint == "it asks to wait 1m01s"
    assert error.value.details["retry_after_s"] == 61


@pytest.mark.rule("A-002")
@pytest.mark.parametrize("word", ["", "soon", "-1", "1.5", "Fri, 99 Foo 2020", "²"])
def test_a_pause_that_is_none_is_passed_over(clock: MovedClock, word: str) -> None:
    asking([answered(503, retry_after=word)], clock).ask(REQUEST)
    assert clock.slept == [0.5]


def test_a_moment_that_is_over_is_no_pause(clock: MovedClock) -> None:
    at = format_datetime(datetime.fromtimestamp(clock.at - 500, UTC), usegmt=True)
    asking([answered(503, now=clock.at, retry_after=at)], clock).ask(REQUEST)
    assert clock.slept == [0.5]


@pytest.mark.rule("A-003")
@pytest.mark.parametrize("error", [lost(), OutcomeUnknown("who knows"), Refused("no")])
def test_a_change_is_sent_once(clock: MovedClock, error: AjError) -> None:
    scripted = Scripted([error])
    with pytest.raises(type(error)):
        Retrying(scripted, clock).send(REQUEST)
    assert scripted.calls == ["send"]
    assert clock.slept == []


@pytest.mark.rule("C-082b")
def test_a_name_that_nobody_knows_is_looked_up_twice_and_not_for_ten_seconds(clock: MovedClock) -> None:
    unknown = [Unavailable("there is no host x, or no network", code=NO_HOST) for _ in range(5)]
    transport = asking(list(unknown), clock)
    with pytest.raises(Unavailable, match="no host"):
        transport.ask(REQUEST)
    assert clock.slept == [PAUSES_S[0]]
