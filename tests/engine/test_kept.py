"""Answers that are kept: fresh, old with a word that says so, or none; renewed by one caller at a time."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM
from aj.base.errors import Unavailable
from aj.engine import kept
from aj.engine.kept import Held, Shelf, Wish
from tests.conftest import MovedClock

FRESH = Wish(600.0)


@dataclass(frozen=True)
class Stock:
    """What is kept here."""

    words: tuple[str, ...] = ()


@dataclass
class Source:
    """Gives one answer after the other, or fails; waits for its gate when it has one."""

    answers: list[str | Exception]
    asked: int = 0
    gate: threading.Event | None = None
    begun: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> Stock:
        self.asked += 1
        self.begun.set()
        if self.gate is not None:
            assert self.gate.wait(10)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Stock((answer,))


Get = Callable[..., Held[Stock]]


@pytest.fixture
def shelf(tmp_path: Path, clock: MovedClock) -> Shelf:
    return Shelf(tmp_path / "quota", clock)


@pytest.mark.rule("A-170")
def test_an_answer_is_fresh_for_a_while(shelf: Shelf, clock: MovedClock, tmp_path: Path) -> None:
    source = Source(["one", "two"])
    assert shelf.get(Stock, "k", source, FRESH) == Held(Stock(("one",)), 0.0)
    clock.move(600)
    assert shelf.get(Stock, "k", source, FRESH) == Held(Stock(("one",)), 600.0)
    assert shelf.get(Stock, "other", Source(["x"]), FRESH).value == Stock(("x",))
    assert source.asked == 1
    (file,) = (tmp_path / "quota").glob("k.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert shelf.get(Stock, "k", source, Wish(600.0, refresh=True)) == Held(Stock(("two",)), 0.0)


@pytest.mark.rule("A-170")
def test_an_old_one_is_shown_while_a_new_one_is_fetched(
    shelf: Shelf, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.get(Stock, "k", Source(["one"]), FRESH)
    clock.move(601)
    gate = threading.Event()
    source = Source(["two"], gate=gate)
    old = shelf.get(Stock, "k", source, FRESH)
    assert (old.value, old.age_s, old.is_stale, old.problem) == (Stock(("one",)), 601.0, True, None)
    assert shelf.get(Stock, "k", Source([]), FRESH).is_stale  # the same renewal, not a second one
    real = kept.wait

    def joined(futures: list[Future[object]]) -> object:
        gate.set()  # only now that the refresh has joined the renewal may that come to its end
        return real(futures)

    monkeypatch.setattr(kept, "wait", joined)
    assert shelf.get(Stock, "k", source, Wish(600.0, refresh=True)).value == Stock(("two",))
    assert source.asked == 1


@pytest.mark.rule("A-170")
def test_a_new_one_that_comes_soon_is_waited_for(tmp_path: Path, clock: MovedClock, real_clock: None) -> None:
    Shelf(tmp_path, clock).get(Stock, "k", Source(["one"]), FRESH)
    assert Shelf(tmp_path, SYSTEM).get(Stock, "k", Source(["two"]), Wish(-1.0)) == Held(Stock(("two",)), 0.0)


@pytest.mark.rule("A-170")
def test_a_failed_renewal_keeps_the_old_one_and_says_why(shelf: Shelf, clock: MovedClock) -> None:
    shelf.get(Stock, "k", Source(["one"]), FRESH)
    clock.move(700)
    held = shelf.get(Stock, "k", Source([Unavailable("no network")]), Wish(600.0, refresh=True))
    assert (held.value, held.age_s, held.is_stale) == (Stock(("one",)), 700.0, True)
    assert isinstance(held.problem, Unavailable)
    with pytest.raises(Unavailable, match="no network"):
        shelf.get(Stock, "new", Source([Unavailable("no network")]), FRESH)


@pytest.mark.rule("A-170")
def test_offline_nobody_is_asked(shelf: Shelf, clock: MovedClock) -> None:
    offline = Unavailable("no network")
    source = Source(["one"])
    with pytest.raises(Unavailable):
        shelf.get(Stock, "k", source, Wish(600.0, offline=offline))
    shelf.get(Stock, "k", source, FRESH)
    assert shelf.get(Stock, "k", source, Wish(600.0, offline=offline)) == Held(Stock(("one",)), 0.0)
    clock.move(5000)
    assert shelf.get(Stock, "k", source, Wish(600.0, offline=offline)) == Held(Stock(("one",)), 5000.0, True, offline)
    assert source.asked == 1


def test_callers_at_once_share_one_question(shelf: Shelf) -> None:
    gate = threading.Event()
    source = Source(["one"], gate=gate)
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(shelf.get, Stock, "k", source, FRESH)
        assert source.begun.wait(10)
        others = [threads.submit(shelf.get, Stock, "k", source, FRESH) for _ in range(3)]
        gate.set()
        assert {one.result().value for one in (first, *others)} == {Stock(("one",))}
    assert source.asked == 1


def test_what_another_release_or_a_broken_disk_left_is_as_good_as_none(
    shelf: Shelf, tmp_path: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.get(Stock, "k", Source(["one"]), FRESH)
    monkeypatch.setattr(kept, "FORMAT", 2)
    assert shelf.get(Stock, "k", Source(["two"]), FRESH).value == Stock(("two",))
    (tmp_path / "quota" / "k.json").write_text('{"at": 1800000000, "value": {"format": 2, "answer": {"words": 3}}}')
    assert shelf.get(Stock, "k", Source(["three"]), FRESH).value == Stock(("three",))
    (tmp_path / "file").write_text("")
    full = Shelf(tmp_path / "file", clock)
    assert full.get(Stock, "k", Source(["four"]), FRESH).value == Stock(("four",))


def test_a_fault_of_our_own_is_no_old_answer(shelf: Shelf, clock: MovedClock) -> None:
    shelf.get(Stock, "k", Source(["one"]), FRESH)
    with pytest.raises(ZeroDivisionError):
        shelf.get(Stock, "k", Source([ZeroDivisionError()]), Wish(600.0, refresh=True))
