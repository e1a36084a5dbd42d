"""The engine opens projects at their first request, owns them, and answers for those it does not own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from aj.base.errors import AjError, DaemonError, NotFound, Refused, UserError
from aj.base.paths import Project
from aj.model.record import RecordState
from aj.model.ticket import Fault, Mode, Outcome, Submitted, TicketState
from aj.store import atomic, journal, lock, tickets
from aj.store.queue import Tickets
from aj.wire.messages import Archive, Busy, ProjectQueue
from tests.conftest import Home, MovedClock
from tests.engine.stand import REFUSED, Held, Stand, raising
from tests.store import nouns

NAME = "q-00000001"


@pytest.fixture
def stand(home: Home, clock: MovedClock) -> Iterator[Stand]:
    made = Stand(home, clock)
    yield made
    made.engine.stop()


@pytest.fixture
def project(home: Home) -> Project:
    return home.project("one")


def put(stand: Stand, number: int, project: Project | None, mode: Mode = Mode.QUEUED) -> None:
    stand.engine.submit(project, stand.submission(number, mode=mode))


def done(stand: Stand, number: int, project: Project | None) -> None:
    assert stand.engine.submission(project, nouns.aj_id(number), 20).ticket.state is TicketState.COMPLETED


def left(stand: Stand, project: Project, *numbers: int) -> Stand:
    """Tickets that an earlier daemon left waiting; return the next one."""
    for number in numbers:
        Tickets(stand.home.layout, project.key).add(nouns.ticket(number, service="far", sequence=number))
    Tickets(stand.home.layout, project.key).remember_project(str(project.directory))
    return stand.again()


# Opening


@pytest.mark.rule("C-245")
def test_a_queue_is_taken_up_at_the_first_request_of_its_project_and_not_before(
    stand: Stand, project: Project, home: Home
) -> None:
    held = Held()
    again = left(stand, project, 1, 2)
    again.far.before = held
    other = home.project("two")
    again.engine.queue_list(other, True, (), 0)
    assert again.engine.busy() == Busy()
    assert lock.living_holder(home.layout.ownership(project.key)) is None
    assert again.engine.queue_show(project, NAME).ticket.state in (TicketState.QUEUED, TicketState.RUNNING)
    held.wait_entered()
    assert again.engine.busy() == Busy(tickets_running=1, tickets_queued=1)
    held.let_go()
    done(again, 2, project)
    assert again.near.adopted == [other.key, project.key]
    again.engine.stop()


@pytest.mark.rule("C-245", "C-278")
def test_what_was_in_work_is_unknown_in_the_very_first_answer(stand: Stand, project: Project) -> None:
    box = Tickets(stand.home.layout, project.key)
    for number in (1, 2, 3):
        box.add(nouns.ticket(number, service="far"))
    box.change(NAME, state=TicketState.RUNNING)
    held = Held()
    stand.far.before = held
    found = stand.engine.queue_list(project, False, (), 0).tickets
    assert (found[0].ticket, found[0].outcome) == (NAME, Outcome.UNKNOWN)
    held.let_go()
    done(stand, 2, project)
    done(stand, 3, project)
    assert [name[-1] for name in stand.far.sent] == ["2", "3"]


def test_a_project_with_an_unfinished_job_is_owned_from_the_start_but_its_queue_waits(
    stand: Stand, project: Project
) -> None:
    left(stand, project, 1).engine.stop()
    again = Stand(stand.home, stand.clock)
    again.near.unfinished = {project.key}
    again.engine.start()
    assert again.near.adopted == [project.key]
    assert lock.living_holder(stand.home.layout.ownership(project.key)) is not None
    assert again.engine.busy() == Busy(tickets_queued=1)
    again.engine.queue_list(project, False, (), 0)  # its first request, if only a look
    done(again, 1, project)
    again.engine.stop()


def test_a_project_that_was_opened_without_its_path_learns_it(stand: Stand, project: Project) -> None:
    stand.engine.open_project(project.key)
    put(stand, 1, project)
    done(stand, 1, project)
    assert tickets.project_path(stand.home.layout, project.key) == str(project.directory)
    (record,) = journal.read(stand.home.layout, project.key, lambda _: None)
    assert record.project == str(project.directory)


def test_a_project_that_somebody_else_has_does_not_stop_the_start(stand: Stand, project: Project) -> None:
    other = lock.own(stand.home.layout.ownership(project.key), "socket /elsewhere")
    stand.near.unfinished = {project.key}
    stand.engine.start()
    assert stand.near.adopted == []
    other.release()
    assert stand.near.open_project is not None
    stand.near.open_project(project.key)
    assert stand.near.adopted == [project.key]


def test_a_job_side_that_cannot_adopt_leaves_the_project_free(
    stand: Stand, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> None:
        raise AjError("damaged")

    with monkeypatch.context() as patch:
        patch.setattr(stand.near, "adopt", refuse)
        with pytest.raises(AjError, match="damaged"):
            put(stand, 1, project)
    assert lock.living_holder(stand.home.layout.ownership(project.key)) is None
    put(stand, 1, project)
    done(stand, 1, project)


def test_twenty_first_requests_at_once_open_a_project_once(stand: Stand, project: Project) -> None:
    line = threading.Barrier(20)
    found: list[int] = []

    def look() -> None:
        line.wait(20)
        found.append(len(stand.engine.queue_list(project, False, (), 0).tickets))

    threads = [threading.Thread(target=look) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [0] * 20
    assert stand.near.adopted == [project.key]


@pytest.mark.rule("C-238", "C-273")
def test_a_second_daemon_reads_and_changes_nothing(stand: Stand, project: Project, home: Home) -> None:
    held = Held()
    stand.far.before = held
    put(stand, 1, project)
    put(stand, 2, project)
    held.wait_entered()
    second = Stand(home, stand.clock)
    listed = second.engine.queue_list(project, False, (), 0)
    assert [ticket.state for ticket in listed.tickets] == [TicketState.RUNNING, TicketState.QUEUED]
    assert "the queue is only looked at: held by process" in listed.warnings[0]
    assert second.engine.queue_show(project, NAME).ticket.state is TicketState.RUNNING
    for change in (
        lambda: second.engine.submit(project, second.submission(3)),
        lambda: second.engine.queue_cancel(project, "q-00000002"),
        lambda: second.engine.queue_retry(project, "q-00000002", True),
        lambda: second.engine.queue_reconcile(project, NAME),
        lambda: second.engine.queue_wait(project, NAME, 0),
    ):
        with pytest.raises(Refused) as caught:
            change()
        assert caught.value.code == "lock-held"
        assert {"pid", "host", "since", "note"} <= caught.value.details.keys()
        assert caught.value.hint is not None and "ends it" in caught.value.hint
    done_answer = second.engine.queue_resume(project)
    assert done_answer.status == "noop"
    assert "held by process" in done_answer.warnings[0]
    held.let_go()
    done(stand, 2, project)
    assert len(stand.far.sent) == 2
    second.engine.stop()
    stand.engine.stop()
    third = Stand(home, stand.clock)
    put(third, 3, project)
    done(third, 3, project)
    third.engine.stop()


# Asking


@pytest.mark.rule("C-246", "C-029")
def test_all_projects_are_listed_also_those_whose_folder_is_gone(stand: Stand, home: Home) -> None:
    one, two = home.project("one"), home.project("two")
    again = left(left(stand, one, 1), two, 2)
    home.project("two")
    (two.directory / "template").rmdir()
    two.directory.rmdir()
    put(again, 3, None)
    done(again, 3, None)
    found = again.engine.queue_list(None, True, (), 0)
    assert sorted(ticket.ticket for ticket in found.tickets) == ["q-00000001", "q-00000002", "q-00000003"]
    assert {(queue.key, queue.path, queue.queued) for queue in found.projects} == {
        ("_none", None, 0),
        (one.key, str(one.directory), 1),
        (two.key, str(two.directory), 1),
    }
    assert found.projects == tuple(sorted(found.projects, key=lambda queue: (queue.key != "_none", queue.key)))
    assert set(again.engine.projects()) == set(found.projects)
    assert again.engine.queue_list(None, False, (), 0).projects == (ProjectQueue("_none", None, 0),)
    again.engine.stop()


def test_waiting_tickets_of_a_closed_project_are_counted_again_only_when_it_changed(
    stand: Stand, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = left(stand, project, 1, 2)
    assert again.engine.projects() == (ProjectQueue(project.key, str(project.directory), 2),)

    def never(*_: object) -> int:
        raise AssertionError("counted again")

    with monkeypatch.context() as patch:
        patch.setattr(tickets, "count_queued", never)
        assert again.engine.projects()[0].queued == 2
    Tickets(stand.home.layout, project.key).add(nouns.ticket(3))
    assert again.engine.projects()[0].queued == 3
    again.engine.stop()


def test_a_list_that_is_cut_says_how_many_more_there_are(stand: Stand) -> None:
    for number in (1, 2, 3):
        put(stand, number, None)
        done(stand, number, None)
    found = stand.engine.queue_list(None, False, (), 2)
    assert [ticket.ticket for ticket in found.tickets] == ["q-00000002", "q-00000003"]
    assert found.warnings == ("1 more in _none: `aj queue list -n 3`",)
    with pytest.raises(UserError, match="no state of a ticket"):
        stand.engine.queue_list(None, False, ("success",), 0)


@pytest.mark.rule("C-292", "C-294")
def test_an_unknown_ticket_is_not_found_whatever_is_asked(stand: Stand) -> None:
    engine = stand.engine
    for word in ("q-0000000f", "", "../queue", "a/b"):
        for ask in (engine.queue_show, engine.queue_cancel, engine.queue_reconcile):
            with pytest.raises(NotFound) as caught:
                ask(None, word)
            assert caught.value.exit_code == 3
        with pytest.raises(NotFound):
            engine.queue_wait(None, word, 1000)
        with pytest.raises(NotFound):
            engine.queue_retry(None, word, True)
        with pytest.raises(NotFound):
            engine.submission(None, word, 1000)


def test_a_ticket_of_another_project_is_found_by_its_name(stand: Stand, home: Home) -> None:
    one, two = home.project("one"), home.project("two")
    put(stand, 1, one)
    done(stand, 1, two)
    assert stand.engine.queue_show(two, NAME).ticket.project == one.key
    again = stand.again()
    assert again.engine.queue_show(two, NAME).ticket.project == one.key
    again.engine.stop()


@pytest.mark.rule("C-213")
@pytest.mark.parametrize(
    ("state", "more", "ends"),
    [
        (
            RecordState.SUBMITTED,
            {"azure_name": "there", "handle": "far://x/there", "outcome": "submitted"},
            (TicketState.COMPLETED, Outcome.SUBMITTED, Submitted("there", "far://x/there")),
        ),
        (RecordState.FAILED, {"outcome": "failed"}, (TicketState.FAILED, Outcome.FAILED, None)),
        (RecordState.FAILED, {"outcome": "never-arrived"}, (TicketState.FAILED, Outcome.NEVER_ARRIVED, None)),
        (RecordState.UNKNOWN, {}, (TicketState.FAILED, Outcome.UNKNOWN, None)),
        (RecordState.INTENDED, {}, (TicketState.FAILED, Outcome.UNKNOWN, None)),
    ],
)
def test_an_attempt_without_a_ticket_is_answered_from_the_journal(
    stand: Stand, state: RecordState, more: dict[str, object], ends: tuple[object, ...]
) -> None:
    fault = Fault("Refused", "no", "said no")
    journal.append(stand.home.layout, "_none", nouns.record(1, state, error=fault, **more))
    ticket = stand.engine.submission(None, nouns.aj_id(1), 0).ticket
    assert (ticket.state, ticket.outcome, ticket.result) == ends
    assert (ticket.ticket, ticket.id, ticket.error) == (NAME, nouns.aj_id(1), fault)


@pytest.mark.rule("C-230")
def test_no_answer_carries_a_request(stand: Stand) -> None:
    held = Held()
    stand.far.before = held
    answers = [stand.engine.submit(None, stand.submission(1))]
    held.wait_entered()
    answers.append(stand.engine.submit(None, stand.submission(2)))
    answers.append(stand.engine.submission(None, nouns.aj_id(1), 0))
    answers.append(stand.engine.queue_show(None, NAME))
    answers.append(stand.engine.queue_wait(None, NAME, 0))
    answers.append(stand.engine.queue_cancel(None, "q-00000002"))
    held.let_go()
    answers.append(stand.engine.submission(None, nouns.aj_id(1), 20))
    assert [answer.ticket.request for answer in answers] == [None] * len(answers)
    assert [ticket.request for ticket in stand.engine.queue_list(None, False, (), 0).tickets] == [None, None]


# Coming and going


@pytest.mark.rule("C-221", "C-204")
def test_it_tells_what_a_stop_would_disturb(stand: Stand, clock: MovedClock) -> None:
    held = Held()
    stand.far.before = held
    assert stand.engine.busy().is_idle
    clock.move(100)
    assert stand.engine.last_activity() == clock.monotonic() - 100
    put(stand, 1, None)
    put(stand, 2, None)
    held.wait_entered()
    assert stand.engine.busy() == Busy(tickets_running=1, tickets_queued=1)
    assert stand.engine.last_activity() == clock.monotonic()
    held.let_go()
    done(stand, 2, None)
    assert stand.engine.busy().is_idle


@pytest.mark.rule("C-222")
def test_a_drain_waits_for_what_is_being_accepted_and_carried_out(stand: Stand) -> None:
    packing, sending = Held(), Held()
    stand.pack.before, stand.far.before = packing, sending
    thread = threading.Thread(target=put, args=(stand, 1, None, Mode.DIRECT))
    thread.start()
    packing.wait_entered()
    assert not stand.engine.drain(0)
    packing.let_go()
    sending.wait_entered()
    thread.join(20)
    assert not stand.engine.drain(0)
    with pytest.raises(DaemonError) as caught:
        put(stand, 2, None)
    assert caught.value.code == "retiring"
    with pytest.raises(DaemonError):
        stand.engine.queue_retry(None, NAME, True)
    assert stand.engine.queue_show(None, NAME).ticket.state is TicketState.RUNNING
    sending.let_go()
    assert stand.engine.drain(None)
    done(stand, 1, None)


def test_a_stop_lets_go_of_everything(stand: Stand, project: Project) -> None:
    put(stand, 1, project)
    done(stand, 1, project)
    listener = stand.engine.hub.subscribe()
    stand.engine.stop()
    assert stand.near.is_stopped
    assert listener.is_closed
    assert lock.living_holder(stand.home.layout.ownership(project.key)) is None


def test_events_of_the_queue_are_published(stand: Stand, project: Project) -> None:
    listener = stand.engine.hub.subscribe(project.key)
    put(stand, 1, project)
    put(stand, 2, None)
    done(stand, 1, project)
    events = [listener.next(20) for _ in range(3)]
    assert [(event.topic, event.payload["state"]) for event in events if event] == [
        ("queue", "queued"),
        ("queue", "running"),
        ("queue", "completed"),
    ]


@pytest.mark.rule("C-246")
def test_resume_opens_what_waits(stand: Stand, home: Home) -> None:
    assert stand.engine.queue_resume(None).status == "noop"
    one, two = home.project("one"), home.project("two")
    again = left(left(stand, one, 1), two, 2)
    told = again.engine.queue_resume(None)
    assert told.status == "ok"
    done(again, 1, one)
    done(again, 2, two)
    again.engine.stop()


@pytest.mark.rule("C-252")
def test_archives_that_nobody_needs_go_at_a_start(stand: Stand, clock: MovedClock, project: Project) -> None:
    held = Held()
    stand.far.before = held
    put(stand, 1, project)
    held.wait_entered()
    (stand.tree / "train.py").write_text("another")
    put(stand, 2, project)
    layout = stand.home.layout
    first, second = (stand.engine.queue_show(project, f"q-0000000{number}").ticket.code for number in (1, 2))
    assert first is not None
    assert second is not None
    stand.engine.begin_drain()
    held.let_go()
    clock.at = layout.archive(first.digest).stat().st_mtime + 31 * 86400
    again = stand.again()
    for thread in threading.enumerate():
        if thread.name == "archives":
            thread.join(20)
    assert not layout.archive(first.digest).exists()
    assert layout.archive(second.digest).exists()
    done_answer = again.engine.queue_resume(project)
    assert done_answer.status == "ok"
    done(again, 2, project)
    again.engine.stop()


@pytest.mark.rule("C-275")
def test_a_queue_that_cannot_be_taken_up_is_still_read(
    stand: Stand, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = left(stand, project, 1)

    def full(*_: object) -> None:
        raise AjError("no space", code="cannot-write")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", full)
        found = again.engine.queue_list(project, False, (), 0)
        assert [ticket.ticket for ticket in found.tickets] == [NAME]
        assert found.warnings == ("the queue is only looked at: no space",)
        with pytest.raises(AjError, match="no space"):
            put(again, 2, project)
    again.engine.queue_resume(project)
    done(again, 1, project)
    again.engine.stop()


# Code


@pytest.mark.rule("C-048")
def test_packed_code_goes_when_neither_a_ticket_nor_a_job_may_need_it(
    stand: Stand, project: Project, home: Home, clock: MovedClock
) -> None:
    digests = []
    for number, text in enumerate(("sent", "failed", "waits"), start=1):
        (stand.tree / "train.py").write_text(text)
        if text == "failed":
            stand.far.before = raising(REFUSED)
        if text == "waits":
            stand.far.before = held = Held()
        put(stand, number, project)
        if text == "waits":
            held.wait_entered()
        else:
            stand.engine.queue_wait(project, f"q-0000000{number}", 20)
        code = stand.engine.queue_show(project, f"q-0000000{number}").ticket.code
        assert code is not None
        digests.append(code.digest)
    for digest in digests:
        os.utime(home.layout.archive(digest), (clock.now() - 1_000, clock.now() - 1_000))
    assert stand.engine.code_prune(2_000, False).archives == ()
    gone = (Archive(digests[0], 4),)
    assert stand.engine.code_prune(500, True).archives == gone
    assert home.layout.archive(digests[0]).exists()
    assert stand.engine.code_prune(500, False).archives == gone
    assert [home.layout.archive(digest).exists() for digest in digests] == [False, True, True]
    held.let_go()
