"""A failed submission is repeated once, as it was; one whose job may exist only by force."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from aj.base.errors import AjError, NotFound, OutcomeUnknown, Refused
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import atomic, journal
from tests.conftest import Home, MovedClock
from tests.engine.stand import FAR, REFUSED, Stand, raising
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


def failed(stand: Stand) -> Ticket:
    stand.far.before = raising(REFUSED)
    stand.engine.submit(None, stand.submission(1, mode=Mode.DIRECT))
    ticket = stand.engine.submission(None, ID, 20).ticket
    assert ticket.outcome is Outcome.FAILED
    stand.far.before = lambda _: None
    return ticket


@pytest.mark.rule("C-250", "C-149")
def test_a_retry_is_a_new_ticket_with_the_stored_request_and_code(stand: Stand) -> None:
    old = failed(stand)
    (stand.tree / "train.py").write_text("print('edited')\n")
    answer = stand.engine.queue_retry(None, NAME, False)
    new = answer.ticket
    assert answer.warnings == ()
    assert new.id != ID
    assert (new.ticket, new.retried_from, new.mode) == (f"q-{new.id}", NAME, Mode.QUEUED)
    assert new.name == f"work_{new.id}"
    assert new.code == old.code
    assert new.request is None
    end = stand.engine.submission(None, new.id, 20).ticket
    assert end.state is TicketState.COMPLETED
    assert stand.far.sent == [f"far-work_{ID}", f"far-work_{new.id}"]
    assert stand.engine.queue_show(None, NAME).ticket.retried_as == new.ticket
    assert [record.id for record in journal.read(stand.home.layout, "_none", lambda _: None)] == [ID, new.id]
    with pytest.raises(Refused) as caught:
        stand.engine.queue_retry(None, NAME, False)
    assert caught.value.code == "retried"
    assert new.ticket in caught.value.message


@pytest.mark.rule("C-250", "C-296")
def test_an_unknown_outcome_is_retried_only_by_force_and_with_a_warning(stand: Stand) -> None:
    lost(stand, arrived=True)
    stand.far.after = lambda _: None
    with pytest.raises(OutcomeUnknown) as caught:
        stand.engine.queue_retry(None, NAME, False)
    assert caught.value.hint is not None
    assert f"aj queue reconcile {NAME}" in caught.value.hint
    answer = stand.engine.queue_retry(None, NAME, True)
    assert answer.warnings == (f"the job of {NAME} may exist: now it may exist twice",)
    assert stand.engine.submission(None, answer.ticket.id, 20).ticket.state is TicketState.COMPLETED
    assert len(stand.far.sent) == 2


@pytest.mark.rule("C-250")
def test_only_what_failed_is_retried(stand: Stand) -> None:
    stand.engine.submit(None, stand.submission(1))
    stand.engine.submission(None, ID, 20)
    with pytest.raises(Refused) as caught:
        stand.engine.queue_retry(None, NAME, True)
    assert caught.value.code == "not-failed"
    with pytest.raises(NotFound):
        stand.engine.queue_retry(None, "q-0000000f", True)


@pytest.mark.rule("C-250")
def test_a_retry_needs_the_stored_code_and_request(stand: Stand) -> None:
    old = failed(stand)
    assert old.code is not None
    archive = stand.home.layout.archive(old.code.digest)
    moved = archive.rename(archive.with_name("elsewhere"))
    with pytest.raises(Refused) as caught:
        stand.engine.queue_retry(None, NAME, False)
    assert caught.value.code == "code-gone"
    moved.rename(archive)
    path = stand.home.layout.ticket("_none", NAME)
    raw = path.read_bytes()
    path.unlink()
    with pytest.raises(Refused) as caught:
        stand.engine.queue_retry(None, NAME, False)
    assert caught.value.code == "request-gone"
    path.write_bytes(raw)
    assert stand.engine.queue_retry(None, NAME, False).ticket.retried_from == NAME


@pytest.mark.rule("C-250", "C-236")
def test_a_retry_that_cannot_be_stored_has_not_happened(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    old = failed(stand)
    assert old.code is not None

    def full(*_: object) -> None:
        raise AjError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", full)
        with pytest.raises(AjError, match="no space"):
            stand.engine.queue_retry(None, NAME, False)
    assert stand.home.layout.archive(old.code.digest).exists()
    assert len(stand.engine.queue_list(None, False, ("queued", "failed"), 0).tickets) == 1
    assert stand.engine.queue_retry(None, NAME, False).ticket.retried_from == NAME


@pytest.mark.rule("C-250")
def test_of_two_retries_at_once_one_is_refused(stand: Stand) -> None:
    failed(stand)
    line = threading.Barrier(2)
    found: list[str] = []

    def retry() -> None:
        line.wait(10)
        try:
            found.append(stand.engine.queue_retry(None, NAME, False).ticket.ticket)
        except Refused as error:
            found.append(error.code)

    threads = [threading.Thread(target=retry) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(found)[1] == "retried"
    stand.engine.submission(None, sorted(found)[0][2:], 20)
    assert len(stand.far.sent) == 2
