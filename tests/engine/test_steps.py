"""What happens to a submission reaches who follows it and who listens, in order, with all its numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from aj.backend.protocol import Request
from aj.engine.desk import FOLLOWED, Desk
from aj.engine.steps import Steps
from aj.model.handle import Handle
from aj.model.step import Kind, Step
from aj.model.ticket import Mode
from aj.wire import codec
from aj.wire.messages import TicketAnswer
from tests.conftest import Home, MovedClock
from tests.engine.stand import Stand
from tests.store import nouns

NAME, ID = "q-00000001", nouns.aj_id(1)
HALF = Step(Kind.UPLOAD, "uploading code, 100 B", 50, 100, 0, "code")
WHOLE = Step(Kind.UPLOAD, "code: uploaded 100 B", 100, 100, 0, "code")
OTHER = Step(Kind.UPLOAD, "bootstrap: reused (0 B sent)", 10, 10, 10, "bootstrap")


@pytest.fixture
def stand(home: Home, clock: MovedClock) -> Iterator[Stand]:
    made = Stand(home, clock)
    yield made
    made.engine.stop()


@pytest.fixture
def desk(home: Home, clock: MovedClock) -> Desk:
    return Desk(home.layout, "_none", None, clock, lambda *_: None)


def telling(stand: Stand, *steps: Step) -> None:
    """Let the far service tell steps while it submits."""
    means = stand.engine._means

    def before(name: str) -> None:
        for step in steps:
            means.steps.tell(ID, step)

    stand.far.before = before


@pytest.mark.rule("A-179")
def test_every_field_reaches_whoever_listens(stand: Stand) -> None:
    telling(stand, Step(Kind.RESOLVE, "there"), HALF, WHOLE, Step(Kind.WARNING, "careful"), Step(Kind.DONE, "done"))
    with_key, of_others = stand.engine.hub.subscribe("_none"), stand.engine.hub.subscribe("another")
    stand.engine.submit(None, stand.submission(1, mode=Mode.DIRECT))
    stand.engine.submission(None, ID, 20)
    heard = []
    while (event := with_key.next(0)) is not None:
        if event.topic == "submission":
            heard.append(event.payload)
    assert [payload["kind"] for payload in heard] == ["resolve", "upload", "upload", "warning", "done"]
    assert heard[1] == {
        "ticket": NAME,
        "id": ID,
        "kind": "upload",
        "detail": "uploading code, 100 B",
        "completed": 50,
        "total": 100,
        "skipped": 0,
        "current": "code",
    }
    assert of_others.next(0) is None


@pytest.mark.rule("A-179", "C-017")
def test_who_follows_gets_each_step_once(stand: Stand) -> None:
    telling(stand, Step(Kind.RESOLVE, "there"), HALF, WHOLE, OTHER)
    stand.engine.submit(None, stand.submission(1, mode=Mode.DIRECT))
    stand.engine.submission(None, ID, 20)
    first = stand.engine.submission(None, ID, 0, 0)
    assert first.steps == (Step(Kind.RESOLVE, "there"), WHOLE, OTHER), "how far it had come is not history"
    assert first.told == 4
    assert stand.engine.submission(None, ID, 0, first.told).steps == ()
    assert codec.load(TicketAnswer, codec.dump(first)) == first


def test_a_step_ends_the_waiting_of_who_wants_it(stand: Stand) -> None:
    """The submission goes on only when somebody has heard of its step."""
    heard = threading.Event()

    def before(name: str) -> None:
        stand.engine._means.steps.tell(ID, HALF)
        assert heard.wait(20)

    stand.far.before = before
    stand.engine.submit(None, stand.submission(1, mode=Mode.DIRECT))
    answer = stand.engine.submission(None, ID, 20, 0)
    assert (answer.steps, answer.ticket.state.is_final) == ((HALF,), False)
    heard.set()
    assert stand.engine.submission(None, ID, 20).ticket.state.is_final


def test_nobody_hears_of_what_is_over() -> None:
    steps, heard = Steps(), list[Step]()
    with steps.hearing("a", heard.append):
        steps.tell("a", HALF)
        steps.tell("b", OTHER)
    steps.tell("a", WHOLE)
    assert heard == [HALF]


def test_the_steps_of_old_submissions_are_let_go(desk: Desk) -> None:
    for number in range(FOLLOWED + 1):
        desk.tell(f"q-{number:08x}", HALF)
    assert desk.steps("q-00000000", 0) == ((), 0)
    assert desk.steps("q-00000001", 0) == ((HALF,), 1)


@pytest.mark.rule("C-017")
def test_what_the_place_matched_and_got_is_in_the_result(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    far = type(stand.far)
    monkeypatch.setattr(
        far, "plan", lambda self, spec, code, **_: Request("far", f"far-{spec.name}", {}, instances=("big", "small"))
    )
    made = Handle("far", "cluster", "x", portal_url="https://portal/x", uploaded_bytes=0)
    monkeypatch.setattr(far, "submit", lambda self, request: made)
    stand.engine.submit(None, stand.submission(1, mode=Mode.DIRECT))
    result = stand.engine.submission(None, ID, 20).ticket.result
    assert result is not None
    assert (result.matched_instances, result.uploaded_bytes) == (("big", "small"), 0)
    assert (result.azure_name, result.portal_url) == ("x", "https://portal/x")
