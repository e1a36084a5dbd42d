"""An unknown outcome is settled by looking, never by sending; what nobody can tell stays unknown."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from aj.base.errors import AjError, AuthError, NotFound, OutcomeUnknown, Refused, Unavailable
from aj.model.record import Record
from aj.model.ticket import Outcome, Ticket, TicketState
from aj.store import atomic, journal, jsonl
from tests.conftest import Home, MovedClock
from tests.engine.stand import FAR, NEAR, Held, Stand, raising
from tests.store import nouns

NAME = "q-00000001"
ID = nouns.aj_id(1)


@pytest.fixture
def stand(home: Home, clock: MovedClock) -> Iterator[Stand]:
    made = Stand(home, clock)
    yield made
    made.engine.stop()


def lost(stand: Stand, *, service: str = FAR, arrived: bool) -> Ticket:
    """Submit one whose answer is lost."""
    place = stand.far if service == FAR else stand.near
    step = raising(OutcomeUnknown("the answer was lost"))
    setattr(place, "after" if arrived else "before", step)
    stand.engine.submit(None, stand.submission(1, service=service))
    ticket = stand.engine.submission(None, ID, 20).ticket
    assert ticket.outcome is Outcome.UNKNOWN
    return ticket


def last(stand: Stand) -> Record:
    (record,) = journal.read(stand.home.layout, "_none", lambda _: None)
    return record


@pytest.mark.rule("C-249", "C-241", "T46")
@pytest.mark.parametrize("service", [FAR, NEAR])
def test_what_is_found_was_submitted(stand: Stand, clock: MovedClock, service: str) -> None:
    lost(stand, service=service, arrived=True)
    found = stand.engine.queue_reconcile(None, NAME).ticket
    name = f"far-work_{ID}" if service == FAR else ID
    assert (found.state, found.outcome) == (TicketState.COMPLETED, Outcome.SUBMITTED)
    assert found.result is not None
    assert found.result.azure_name == name
    assert (found.error, found.request) == (None, None)
    record = last(stand)
    assert (record.state.value, record.outcome, record.azure_name) == ("submitted", "submitted", name)
    assert record.handle == found.result.handle
    assert b"hunter2" not in stand.home.layout.ticket("_none", NAME).read_bytes()
    assert clock.slept == []
    assert len(stand.far.sent) + len(stand.near.admitted) == 1


@pytest.mark.rule("C-249", "C-242")
def test_a_remote_absence_is_believed_after_two_looks_ten_seconds_apart(stand: Stand, clock: MovedClock) -> None:
    lost(stand, arrived=False)
    before = clock.now()
    found = stand.engine.queue_reconcile(None, NAME).ticket
    assert (found.state, found.outcome) == (TicketState.FAILED, Outcome.NEVER_ARRIVED)
    assert found.error is not None
    assert found.error.hint == f"`aj queue retry {NAME}`"
    assert stand.far.looks == 2
    assert clock.now() - before == 10
    record = last(stand)
    assert (record.state.value, record.outcome) == ("failed", "never-arrived")
    assert len(stand.far.sent) == 1


@pytest.mark.rule("C-249")
def test_what_appears_between_the_two_looks_was_submitted(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    lost(stand, arrived=False)

    def arrive(event: threading.Event, timeout_s: float) -> bool:
        (stand.far.folder / f"far-work_{ID}.job").write_text("late")
        return event.is_set()

    monkeypatch.setattr(stand.clock, "wait", arrive)
    assert stand.engine.queue_reconcile(None, NAME).ticket.state is TicketState.COMPLETED


@pytest.mark.rule("C-249")
def test_an_absent_job_of_our_own_is_known_at_once(stand: Stand, clock: MovedClock) -> None:
    lost(stand, service=NEAR, arrived=False)
    before = clock.now()
    assert stand.engine.queue_reconcile(None, NAME).ticket.outcome is Outcome.NEVER_ARRIVED
    assert clock.now() == before


@pytest.mark.rule("C-249")
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OutcomeUnknown("two jobs have this id: a, b"), "two jobs have this id: a, b"),
        (Unavailable("503"), "far did not tell: 503"),
        (AuthError("not signed in"), "far did not tell: not signed in"),
        (AjError("partial list"), "far did not tell: partial list"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("look", [1, 2])
def test_a_place_that_cannot_tell_leaves_it_unknown_and_says_why(
    stand: Stand, error: AjError, says: str, look: int
) -> None:
    lost(stand, arrived=False)
    before = stand.home.layout.journal("_none").read_bytes()

    def looking(_: object) -> None:
        if stand.far.looks == look:
            raise error

    stand.far.looking = looking
    with pytest.raises(OutcomeUnknown) as caught:
        stand.engine.queue_reconcile(None, NAME)
    assert caught.value.message == says
    assert caught.value.exit_code == 6
    assert stand.engine.queue_show(None, NAME).ticket.outcome is Outcome.UNKNOWN
    assert stand.home.layout.journal("_none").read_bytes() == before


def test_a_daemon_that_leaves_does_not_wait_for_the_second_look(stand: Stand) -> None:
    lost(stand, arrived=False)
    stand.engine.begin_drain()
    with pytest.raises(OutcomeUnknown, match="about to leave"):
        stand.engine.queue_reconcile(None, NAME)
    assert stand.far.looks == 1


@pytest.mark.rule("C-249")
def test_what_is_known_stays_as_it_is_and_what_is_open_is_refused(stand: Stand) -> None:
    held = Held()
    stand.far.before = held
    stand.engine.submit(None, stand.submission(1))
    stand.engine.submit(None, stand.submission(2))
    held.wait_entered()
    for name in (NAME, "q-00000002"):
        with pytest.raises(Refused) as caught:
            stand.engine.queue_reconcile(None, name)
        assert caught.value.hint == f"`aj queue wait {name}`"
    held.let_go()
    done = stand.engine.submission(None, ID, 20).ticket
    assert stand.engine.queue_reconcile(None, NAME).ticket == done
    with pytest.raises(NotFound):
        stand.engine.queue_reconcile(None, "q-0000000f")
    assert stand.far.looks == 0


@pytest.mark.rule("C-249")
def test_an_outcome_that_cannot_be_written_stays_unknown(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    lost(stand, arrived=True)

    def full(*_: object) -> bool:
        raise AjError("no space")

    for room, name in ((jsonl, "append"), (atomic, "write_json")):
        with monkeypatch.context() as patch:
            patch.setattr(room, name, full)
            with pytest.raises(AjError, match="no space"):
                stand.engine.queue_reconcile(None, NAME)
        assert stand.engine.queue_show(None, NAME).ticket.outcome is Outcome.UNKNOWN
    assert stand.engine.queue_reconcile(None, NAME).ticket.state is TicketState.COMPLETED


@pytest.mark.rule("C-249", "C-278")
def test_it_works_on_what_a_killed_daemon_left(stand: Stand) -> None:
    lost(stand, arrived=True)
    again = stand.again()
    assert again.engine.queue_reconcile(None, NAME).ticket.state is TicketState.COMPLETED
    assert len(again.far.sent) == 1
    again.engine.stop()


def test_two_at_once_settle_it_once(stand: Stand) -> None:
    lost(stand, arrived=True)
    held = Held()
    stand.far.looking = held
    found: list[TicketState] = []
    threads = [
        threading.Thread(target=lambda: found.append(stand.engine.queue_reconcile(None, NAME).ticket.state))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    held.wait_entered()
    held.wait_entered()
    held.let_go()
    for thread in threads:
        thread.join(20)
    assert found == [TicketState.COMPLETED] * 2
