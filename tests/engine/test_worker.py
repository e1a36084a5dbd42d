"""Queued submissions run one at a time in their order, direct ones at once, and no fault stops the line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base.errors import AjError
from aj.base.paths import Project
from aj.engine import worker
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import atomic
from tests.conftest import Home, MovedClock
from tests.engine.stand import FAR, NEAR, Held, Stand, raising
from tests.store import nouns


@pytest.fixture
def stand(home: Home, clock: MovedClock) -> Iterator[Stand]:
    made = Stand(home, clock)
    yield made
    made.engine.stop()


def put(stand: Stand, *numbers: int, project: Project | None = None, mode: Mode = Mode.QUEUED) -> None:
    for number in numbers:
        stand.engine.submit(project, stand.submission(number, mode=mode))


def end(stand: Stand, number: int, project: Project | None = None) -> Ticket:
    return stand.engine.submission(project, nouns.aj_id(number), 20).ticket


def names(*numbers: int) -> list[str]:
    return [f"far-work_{nouns.aj_id(number)}" for number in numbers]


@pytest.mark.rule("C-235")
def test_queued_submissions_run_one_at_a_time_oldest_first(stand: Stand) -> None:
    inside: list[str] = []
    most: list[int] = []

    def come(name: str) -> None:
        inside.append(name)
        most.append(len(inside))

    stand.far.before, stand.far.after = come, inside.remove
    put(stand, 9, 3, 7, 1, 5)
    assert end(stand, 5).state is TicketState.COMPLETED
    assert stand.far.sent == names(9, 3, 7, 1, 5)
    assert max(most) == 1


@pytest.mark.rule("C-235")
def test_a_direct_submission_does_not_stand_behind_queued_ones(stand: Stand) -> None:
    held = Held()
    stand.far.before = lambda name: held(name) if name in names(1, 2) else None
    put(stand, 1, 2)
    held.wait_entered()
    put(stand, 3, mode=Mode.DIRECT)
    assert end(stand, 3).state is TicketState.COMPLETED
    assert stand.engine.queue_show(None, f"q-{nouns.aj_id(1)}").ticket.state is TicketState.RUNNING
    held.let_go()
    assert end(stand, 2).state is TicketState.COMPLETED


@pytest.mark.rule("C-235", "C-220", "T35")
def test_projects_run_side_by_side_and_reads_do_not_wait(stand: Stand) -> None:
    one, two = stand.home.project("one"), stand.home.project("two")
    held = Held()
    stand.far.before = lambda name: held(name) if name in names(1) else None
    put(stand, 1, project=one)
    held.wait_entered()
    put(stand, 2, project=two)
    assert end(stand, 2, two).state is TicketState.COMPLETED
    assert [ticket.state for ticket in stand.engine.queue_list(one, False, (), 0).tickets] == [TicketState.RUNNING]
    assert stand.engine.busy().tickets_running == 1
    held.let_go()
    assert end(stand, 1, one).state is TicketState.COMPLETED


@pytest.mark.parametrize("fault", [ValueError("odd"), AjError("no"), KeyError("x"), MemoryError()])
def test_a_fault_ends_its_ticket_and_the_next_is_taken(stand: Stand, fault: Exception) -> None:
    stand.far.before = lambda name: raising(fault)(name) if name in names(1) else None
    put(stand, 1, 2)
    assert end(stand, 2).state is TicketState.COMPLETED
    assert end(stand, 1).state is TicketState.FAILED


def test_the_line_begins_again_after_it_was_empty(stand: Stand) -> None:
    for number in (1, 2, 3):
        put(stand, number)
        assert end(stand, number).state is TicketState.COMPLETED
    assert stand.far.sent == names(1, 2, 3)


@pytest.mark.rule("C-222")
def test_a_daemon_that_leaves_finishes_what_runs_and_leaves_the_rest(stand: Stand) -> None:
    held = Held()
    stand.far.before = held
    put(stand, 1, 2)
    held.wait_entered()
    stand.engine.begin_drain()
    assert not stand.engine.drain(0)
    held.let_go()
    assert stand.engine.drain(20)
    states = [ticket.state for ticket in stand.engine.queue_list(None, False, (), 0).tickets]
    assert states == [TicketState.COMPLETED, TicketState.QUEUED]
    again = stand.again()
    assert again.far.sent == names(1)
    assert again.engine.queue_resume(None).status == "ok"
    assert end(again, 2).state is TicketState.COMPLETED
    assert again.far.sent == names(1, 2)
    again.engine.stop()


def test_a_disk_that_refuses_a_start_is_told_and_asked_again(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refusals = atomic.write_json, threading.Semaphore(0)
    full = threading.Event()
    full.set()

    def write(path: Path, value: object) -> None:
        if full.is_set() and isinstance(value, dict) and value.get("state") == "running":
            refusals.release()
            raise AjError("no space", code="cannot-write")
        real(path, value)  # type: ignore[arg-type]

    monkeypatch.setattr(worker, "PAUSE_S", 0.01)
    monkeypatch.setattr(atomic, "write_json", write)
    put(stand, 1)
    assert refusals.acquire(timeout=20)
    assert refusals.acquire(timeout=20)
    answer = stand.engine.queue_list(None, False, (), 0)
    assert answer.tickets[0].state is TicketState.QUEUED
    assert answer.warnings == ("the queue stands still: no space",)
    assert stand.far.sent == []
    full.clear()
    assert end(stand, 1).state is TicketState.COMPLETED


@pytest.mark.rule("C-275")
def test_a_direct_submission_that_cannot_start_says_so(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    real = atomic.write_json

    def write(path: Path, value: object) -> None:
        if isinstance(value, dict) and value.get("state") in ("running", "failed"):
            raise AjError("no space", code="cannot-write")
        real(path, value)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", write)
        put(stand, 1, mode=Mode.DIRECT)
        ticket = end(stand, 1)
    assert (ticket.state, ticket.outcome) == (TicketState.FAILED, Outcome.NEVER_ARRIVED)
    assert ticket.detail == "no space"
    assert stand.far.sent == []
    again = stand.again()
    assert again.engine.queue_show(None, ticket.ticket).ticket.outcome is Outcome.NEVER_ARRIVED
    again.engine.stop()


@pytest.mark.rule("C-235")
def test_twenty_at_once_all_run_once_in_the_order_of_their_acceptance(stand: Stand) -> None:
    line = threading.Barrier(20)
    odd: list[BaseException] = []

    def submit(number: int) -> None:
        try:
            line.wait(20)
            stand.engine.submit(None, stand.submission(number, service=FAR if number % 2 else NEAR))
        except BaseException as error:
            odd.append(error)

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(1, 21)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert odd == []
    for number in range(1, 21):
        assert end(stand, number).state is TicketState.COMPLETED
    tickets = stand.engine.queue_list(None, False, (), 0).tickets
    assert [ticket.sequence for ticket in tickets] == list(range(1, 21))
    assert sorted(ticket.id for ticket in tickets) == [nouns.aj_id(number) for number in range(1, 21)]
    order = [ticket.id for ticket in tickets]
    assert [name[-8:] for name in stand.far.sent] == [one for one in order if int(one, 16) % 2]
    assert stand.near.admitted == [one for one in order if not int(one, 16) % 2]
    starts = [ticket.started_at for ticket in tickets]
    assert starts == sorted(str(start) for start in starts)
