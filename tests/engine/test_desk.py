"""A desk owns its project, lets a cancel win over a start, and wakes whoever waits."""

from __future__ import annotations

import os
import threading
import time

import pytest

from aj.base.errors import AjError, NotFound, Refused
from aj.engine.desk import Desk, Ending
from aj.model.json import Json
from aj.model.ticket import Mode, Outcome, Submitted, Ticket, TicketState
from aj.store import atomic, lock
from tests.conftest import Home, MovedClock
from tests.store import nouns

KEY = "project-000000000000"
DONE = Ending(TicketState.COMPLETED, Outcome.SUBMITTED, Submitted("there", "far://x/there"))
UNKNOWN = Ending(TicketState.FAILED, Outcome.UNKNOWN, detail="lost")


class Told(list[tuple[str, str, object, object]]):
    """What was published."""

    def __call__(self, topic: str, key: str, payload: object) -> None:
        assert isinstance(payload, dict)
        self.append((topic, key, payload["ticket"], payload["state"]))


def opened(home: Home, clock: MovedClock | None = None, told: Told | None = None, **more: int) -> Desk:
    desk = Desk(home.layout, KEY, "/p/.azure_jobs", clock or MovedClock(), Told() if told is None else told, **more)
    desk.open("socket /here")
    return desk


def put(desk: Desk, *numbers: int, mode: Mode = Mode.QUEUED) -> list[Ticket]:
    return [desk.store(nouns.ticket(number, mode=mode)) for number in numbers]


@pytest.mark.rule("C-238", "C-273")
def test_a_project_has_one_owner(home: Home) -> None:
    first = opened(home)
    with pytest.raises(Refused) as caught:
        opened(home)
    assert caught.value.details["pid"] == os.getpid()
    assert "socket /here" in caught.value.message
    first.close()
    opened(home).close()


def test_a_queue_that_cannot_be_taken_up_is_given_back(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(home)
    put(first, 1)
    first.take_next()
    first.finish("q-00000001", UNKNOWN)
    put(first, 2)
    first.take_next()
    first._ownership.release()  # type: ignore[union-attr]
    real = atomic.write_json

    def full(path: object, value: Json) -> None:
        if str(path).endswith("q-00000002.json"):
            raise AjError("full")
        real(path, value)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", full)
        with pytest.raises(AjError, match="full"):
            opened(home)
    assert lock.living_holder(home.layout.ownership(KEY)) is None
    assert opened(home).find("q-00000002").outcome is Outcome.UNKNOWN


@pytest.mark.rule("C-235")
def test_the_oldest_queued_is_taken_and_the_direct_is_taken_by_name(home: Home, clock: MovedClock) -> None:
    desk = opened(home, clock)
    put(desk, 1, mode=Mode.DIRECT)
    put(desk, 2, 3)
    clock.move(5)
    first = desk.take_next()
    assert first is not None
    assert (first.ticket, first.state) == ("q-00000002", TicketState.RUNNING)
    assert first.request == nouns.spec(2)
    assert first.started_at == "2027-01-15T08:00:05.000000Z"
    direct = desk.take("q-00000001")
    assert direct is not None
    assert direct.request == nouns.spec(1)
    assert desk.take("q-00000001") is None
    assert desk.take("q-0000000f") is None
    assert desk.counts() == (2, 1)


@pytest.mark.rule("C-222")
def test_a_desk_that_is_about_to_close_starts_nothing_queued(home: Home) -> None:
    desk = opened(home)
    put(desk, 1)
    (direct,) = put(desk, 2, mode=Mode.DIRECT)
    desk.drain()
    assert desk.take_next() is None
    assert not desk.wait_quiet(0)
    assert desk.take(direct.ticket) is not None  # it was promised to run at once
    assert not desk.wait_quiet(0)
    desk.finish(direct.ticket, DONE)
    assert desk.wait_quiet(0)


@pytest.mark.rule("C-247", "T47")
def test_a_canceled_ticket_never_runs(home: Home) -> None:
    desk = opened(home)
    put(desk, 1)
    canceled = desk.cancel("q-00000001")
    assert (canceled.state, canceled.outcome, canceled.request) == (TicketState.CANCELED, Outcome.CANCELED, None)
    assert desk.take_next() is None
    assert desk.take("q-00000001") is None
    assert desk.cancel("q-00000001") == canceled
    assert canceled.finished_at is not None
    desk.close()
    again = opened(home)
    assert again.take_next() is None
    assert again.find("q-00000001").state is TicketState.CANCELED


@pytest.mark.rule("C-247", "C-295")
@pytest.mark.parametrize(
    ("ending", "says", "hint"),
    [
        (None, "is being submitted just now", "`aj job cancel 00000001` once it is submitted"),
        (DONE, "is completed already", "`aj job cancel 00000001`"),
        (UNKNOWN, "is failed already", None),
    ],
)
def test_a_cancel_that_comes_too_late_is_refused(
    home: Home, ending: Ending | None, says: str, hint: str | None
) -> None:
    desk = opened(home)
    put(desk, 1)
    desk.take_next()
    if ending:
        desk.finish("q-00000001", ending)
    with pytest.raises(Refused, match=says) as caught:
        desk.cancel("q-00000001")
    assert caught.value.hint == hint
    with pytest.raises(NotFound):
        desk.cancel("q-00000002")


@pytest.mark.rule("C-247", "T47")
def test_of_a_cancel_and_a_start_at_the_same_moment_one_happens(home: Home) -> None:
    desk = opened(home)
    numbers = range(1, 41)
    put(desk, *numbers)
    line = threading.Barrier(2)
    taken: list[str] = []
    canceled: list[str] = []

    def take() -> None:
        line.wait(10)
        while ticket := desk.take_next():
            taken.append(ticket.ticket)

    def cancel() -> None:
        line.wait(10)
        for number in reversed(numbers):
            try:
                canceled.append(desk.cancel(f"q-{number:08x}").ticket)
            except Refused:
                return

    threads = [threading.Thread(target=work) for work in (take, cancel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not set(taken) & set(canceled)
    assert sorted([*taken, *canceled]) == [f"q-{number:08x}" for number in numbers]
    assert taken == sorted(taken)
    states = {ticket.ticket: ticket.state for ticket in desk.all()}
    assert {name for name, state in states.items() if state is TicketState.CANCELED} == set(canceled)


def test_a_cancel_that_cannot_be_written_has_not_happened(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = opened(home)
    put(desk, 1)

    def full(*_: object) -> None:
        raise AjError("full")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", full)
        with pytest.raises(AjError, match="full"):
            desk.cancel("q-00000001")
    assert desk.take_next() is not None


# Waiting


def waiting(desk: Desk, name: str, limit_s: float = 20) -> tuple[threading.Thread, list[Ticket]]:
    found: list[Ticket] = []
    inside = threading.Event()
    real = desk.changed.wait

    def wait(timeout: float | None = None) -> bool:
        inside.set()
        return real(timeout)

    desk.changed.wait = wait  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: found.append(desk.wait(name, limit_s)))
    thread.start()
    assert inside.wait(20)
    return thread, found


@pytest.mark.rule("C-248")
def test_whoever_waits_is_woken_by_the_end(home: Home) -> None:
    desk = opened(home)
    put(desk, 1)
    thread, found = waiting(desk, "q-00000001")
    desk.take_next()
    desk.finish("q-00000001", DONE)
    thread.join(20)
    assert found[0].state is TicketState.COMPLETED


@pytest.mark.rule("C-248")
def test_whoever_waits_is_woken_when_the_daemon_leaves(home: Home) -> None:
    desk = opened(home)
    put(desk, 1)
    thread, found = waiting(desk, "q-00000001")
    desk.close()
    thread.join(20)
    assert found[0].state is TicketState.QUEUED


@pytest.mark.rule("C-248", "C-293")
def test_a_wait_is_over_at_once_for_what_has_ended_and_at_its_limit_for_the_rest(home: Home) -> None:
    desk = opened(home)
    put(desk, 1, 2)
    desk.take_next()
    desk.finish("q-00000001", DONE)
    assert desk.wait("q-00000001", 0).state is TicketState.COMPLETED
    began = time.monotonic()
    assert desk.wait("q-00000001", 1000).state is TicketState.COMPLETED
    assert desk.wait("q-00000002", 0).state is TicketState.QUEUED
    assert desk.wait("q-00000002", 0.05).state is TicketState.QUEUED
    assert time.monotonic() - began < 10
    with pytest.raises(NotFound):
        desk.wait("q-0000000f", 1000)


# What is told


def test_every_change_is_published_once(home: Home) -> None:
    told = Told()
    desk = opened(home, told=told)
    put(desk, 1, 2)
    desk.take_next()
    desk.finish("q-00000001", UNKNOWN)
    desk.settle("q-00000001", DONE)
    desk.cancel("q-00000002")
    assert told == [
        ("queue", KEY, "q-00000001", "queued"),
        ("queue", KEY, "q-00000002", "queued"),
        ("queue", KEY, "q-00000001", "running"),
        ("queue", KEY, "q-00000001", "failed"),
        ("queue", KEY, "q-00000001", "completed"),
        ("queue", KEY, "q-00000002", "canceled"),
    ]


@pytest.mark.rule("C-245", "C-274")
def test_damaged_tickets_are_told_until_they_are_removed_and_notes_once(home: Home) -> None:
    desk = opened(home)
    put(desk, 1, 2)
    desk.close()
    home.layout.ticket(KEY, "q-00000001").write_bytes(b"{")
    again = opened(home)
    aside = home.layout.tickets(KEY) / "q-00000001.json.damaged-1"
    again.note("the journal was wide")
    again.note("the journal was wide")
    again.note(None)
    damage, note = again.warnings()
    assert str(aside) in damage
    assert note == "the journal was wide"
    assert again.warnings() == (damage,)
    aside.unlink()
    assert again.warnings() == ()
    assert [ticket.ticket for ticket in again.all()] == ["q-00000002"]


@pytest.mark.rule("C-281")
def test_a_wide_ticket_is_narrowed_with_a_word(home: Home) -> None:
    desk = opened(home)
    put(desk, 1)
    path = home.layout.ticket(KEY, "q-00000001")
    path.chmod(0o644)
    desk.cancel("q-00000001")
    assert desk.warnings() == (f"{path}: others could read it; it is private now",)
    assert path.stat().st_mode & 0o777 == 0o600


def test_notes_do_not_grow_without_end(home: Home) -> None:
    desk = opened(home)
    for number in range(100):
        desk.note(str(number))
    assert desk.warnings() == tuple(str(number) for number in range(80, 100))


# Ends


@pytest.mark.rule("C-234")
def test_an_end_the_disk_refuses_is_kept_in_memory_and_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = opened(home)
    put(desk, 1)
    desk.take_next()

    def full(*_: object) -> None:
        raise AjError("full")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", full)
        ended = desk.finish("q-00000001", DONE)
    assert ended.result == DONE.result
    assert desk.wait("q-00000001", 0).state is TicketState.COMPLETED
    assert desk.warnings() == ("q-00000001: how it ended could not be written down: full",)


@pytest.mark.rule("C-249", "T48")
def test_only_what_is_unknown_is_settled(home: Home) -> None:
    desk = opened(home)
    put(desk, 1)
    desk.take_next()
    desk.finish("q-00000001", DONE)
    before = desk.find("q-00000001")
    assert desk.settle("q-00000001", Ending(TicketState.FAILED, Outcome.NEVER_ARRIVED)) == before
    with pytest.raises(NotFound):
        desk.settle("q-00000002", DONE)


@pytest.mark.rule("C-223")
def test_a_desk_with_a_running_submission_stays_owned(home: Home) -> None:
    desk = opened(home)
    put(desk, 1)
    desk.take_next()
    desk.close()
    with pytest.raises(Refused):
        opened(home)


@pytest.mark.rule("C-252")
def test_old_ends_are_pruned_as_new_ones_come(home: Home, clock: MovedClock) -> None:
    desk = opened(home, clock, keep_final=2)
    for number in range(1, 6):
        put(desk, number)
        desk.take_next()
        desk.finish(f"q-{number:08x}", DONE)
        clock.move(1)
    assert [ticket.ticket for ticket in desk.all()] == ["q-00000004", "q-00000005"]
    assert len(list(home.layout.tickets(KEY).glob("q-*"))) == 2


def test_the_last_change_is_known(home: Home, clock: MovedClock) -> None:
    desk = opened(home, clock)
    clock.move(30)
    put(desk, 1)
    assert desk.touched_at == clock.monotonic()


@pytest.mark.parametrize("limit_s", [1e300, float("inf")])
def test_a_wait_may_be_as_long_as_anybody_says(home: Home, limit_s: float) -> None:
    desk = opened(home)
    put(desk, 1)
    thread, found = waiting(desk, "q-00000001", limit_s)
    desk.cancel("q-00000001")
    thread.join(20)
    assert found[0].state is TicketState.CANCELED
