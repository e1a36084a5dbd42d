"""Tickets survive, keep their order, move only as they may, and a damaged one harms no other."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from pathlib import Path

import pytest

from aj.base.errors import AjError, Refused
from aj.model.record import RecordState
from aj.model.ticket import MOVES, Fault, Mode, Outcome, Submitted, TicketState
from aj.store import atomic, journal, lock, queue, tickets
from aj.store.queue import Tickets
from tests.conftest import Home
from tests.store import nouns

KEY = "project-000000000000"
NOW = "2026-02-01T00:00:00.000000Z"


def opened(home: Home, **more: int) -> Tickets:
    box = Tickets(home.layout, KEY, **more)
    box.restore(now=NOW)
    return box


def names(box: Tickets) -> list[str]:
    return [ticket.ticket for ticket in box]


def on_disk(home: Home, name: str) -> dict[str, object]:
    value = json.loads(home.layout.ticket(KEY, name).read_bytes())
    assert isinstance(value, dict)
    return value


def over(box: Tickets, number: int, outcome: Outcome = Outcome.FAILED, *, at: str = NOW) -> None:
    state = {Outcome.SUBMITTED: TicketState.COMPLETED}.get(outcome, TicketState.FAILED)
    name = box.add(nouns.ticket(number)).ticket
    box.change(name, state=TicketState.RUNNING)
    box.change(name, state=state, outcome=outcome, finished_at=at)


# What a ticket's file holds


@pytest.mark.rule("C-228", "C-229")
def test_a_ticket_is_one_private_file_with_everything_in_it(home: Home) -> None:
    box = opened(home)
    box.remember_project("/p/.azure_jobs")
    stored = box.add(nouns.ticket(7))
    assert sorted(os.listdir(home.layout.tickets(KEY))) == ["project.json", f"{stored.ticket}.json"]
    assert set(on_disk(home, stored.ticket)) >= {
        *("schema_version", "ticket", "id", "mode", "state", "outcome", "name", "created_at", "started_at"),
        *("finished_at", "detail", "error", "request", "code", "result", "retried_from", "env_names", "agent"),
        "session",
    }
    assert stat.S_IMODE(home.layout.ticket(KEY, stored.ticket).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.layout.tickets(KEY).stat().st_mode) == 0o700
    assert tickets.project_path(home.layout, KEY) == "/p/.azure_jobs"


@pytest.mark.rule("C-228")
def test_the_project_is_written_down_once_and_again_when_it_moved(home: Home) -> None:
    box = opened(home)
    box.remember_project("/a\udcff")
    before = home.layout.project(KEY).stat().st_ino
    box.remember_project("/a\udcff")
    assert home.layout.project(KEY).stat().st_ino == before
    box.remember_project("/b")
    assert tickets.project_path(home.layout, KEY) == "/b"
    home.layout.project(KEY).write_text("[]")
    assert tickets.project_path(home.layout, KEY) is None
    assert tickets.project_path(home.layout, "other") is None


@pytest.mark.rule("C-230")
@pytest.mark.parametrize(
    ("state", "outcome", "kept"),
    [
        (TicketState.COMPLETED, Outcome.SUBMITTED, False),
        (TicketState.FAILED, Outcome.FAILED, True),
        (TicketState.FAILED, Outcome.UNKNOWN, True),
    ],
)
def test_the_request_goes_with_its_last_use(home: Home, state: TicketState, outcome: Outcome, kept: bool) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    assert box.whole(name).request == nouns.spec(1)
    running = box.change(name, state=TicketState.RUNNING)
    assert running.request == nouns.spec(1)
    box.change(name, state=state, outcome=outcome)
    assert (b"hunter2" in home.layout.ticket(KEY, name).read_bytes()) is kept
    assert (box.whole(name).request is not None) is kept


@pytest.mark.rule("C-230")
def test_a_canceled_ticket_holds_no_request(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    box.change(name, state=TicketState.CANCELED, outcome=Outcome.CANCELED)
    assert b"hunter2" not in home.layout.ticket(KEY, name).read_bytes()


@pytest.mark.rule("C-230")
def test_the_index_and_a_look_hold_no_values(home: Home) -> None:
    box = opened(home)
    box.add(nouns.ticket(1))
    assert all(ticket.request is None for ticket in box)
    assert all(ticket.request is None for ticket in tickets.scan(home.layout, KEY).tickets)


# Moves

SETTLED = [
    (state, outcome) for state in TicketState for outcome in (None, *Outcome) if outcome in queue.OUTCOMES[state]
]


@pytest.mark.rule("C-239", "C-240", "C-241", "C-242", "C-243", "C-244", "T48")
@pytest.mark.parametrize(("source", "before"), SETTLED)
def test_only_the_listed_moves_are_made(home: Home, source: TicketState, before: Outcome | None) -> None:
    allowed = {
        TicketState.QUEUED: {TicketState.RUNNING, TicketState.CANCELED, TicketState.FAILED},
        TicketState.RUNNING: {TicketState.COMPLETED, TicketState.FAILED},
    }
    assert all(MOVES[state] == allowed[state] for state in allowed)
    start = nouns.ticket(1, state=source, outcome=before)
    for target in TicketState:
        for after in (None, *Outcome):
            if (target, after) == (source, before):
                continue
            fits = after in queue.OUTCOMES[target]
            if source in allowed:
                may = target in allowed[source] and fits
            else:
                becomes_known = {TicketState.COMPLETED, TicketState.FAILED}
                may = before is Outcome.UNKNOWN and target in becomes_known and fits
            changed = dataclasses.replace(start, state=target, outcome=after)
            if may:
                queue.check(start, changed)
            else:
                with pytest.raises(Refused) as caught:
                    queue.check(start, changed)
                assert caught.value.code == "bad-move"


@pytest.mark.rule("C-244")
def test_a_refused_move_leaves_the_file_alone(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    before = home.layout.ticket(KEY, name).read_bytes()
    with pytest.raises(Refused, match="is queued and cannot become completed/submitted"):
        box.change(name, state=TicketState.COMPLETED, outcome=Outcome.SUBMITTED)
    assert home.layout.ticket(KEY, name).read_bytes() == before
    found = box.get(name)
    assert found is not None
    assert found.state is TicketState.QUEUED


def test_words_about_a_final_ticket_may_still_change(home: Home) -> None:
    box = opened(home)
    over(box, 1)
    box.change("q-00000001", retried_as="q-00000002")
    assert on_disk(home, "q-00000001")["retried_as"] == "q-00000002"


# Order


@pytest.mark.rule("C-343", "C-235")
def test_order_is_by_sequence_whatever_the_clock_says(home: Home) -> None:
    box = opened(home)
    times = ["2026-01-01T10:00:00.000000Z", "2026-01-01T09:00:00.000000Z", "2025-01-01T00:00:00.000000Z"]
    for number, at in zip((9, 3, 5), times):
        box.add(nouns.ticket(number, created_at=at, sequence=0))
    due = ["q-00000009", "q-00000003", "q-00000005"]
    assert names(box) == due
    again = opened(home)
    assert names(again) == due
    assert names(again) == [ticket.ticket for ticket in tickets.scan(home.layout, KEY).tickets]
    oldest = again.oldest_waiting(Mode.QUEUED)
    assert oldest is not None
    assert oldest.ticket == "q-00000009"
    assert again.add(nouns.ticket(4)).sequence == 4


def test_the_oldest_of_a_mode(home: Home) -> None:
    box = opened(home)
    box.add(nouns.ticket(1, mode=Mode.DIRECT))
    box.add(nouns.ticket(2))
    assert box.oldest_waiting(Mode.DIRECT) == box.get("q-00000001")
    assert box.oldest_waiting(Mode.QUEUED) == box.get("q-00000002")
    box.change("q-00000002", state=TicketState.CANCELED, outcome=Outcome.CANCELED)
    assert box.oldest_waiting(Mode.QUEUED) is None
    assert (box.waiting, box.running) == (1, 0)


@pytest.mark.rule("C-229")
def test_a_change_costs_the_same_in_a_long_queue(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(box: Tickets, number: int) -> list[str]:
        seen: list[str] = []
        real_read, real_write, real_scan = Path.read_bytes, atomic.write_json, os.scandir
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda path: (seen.append(f"r {path.name}"), real_read(path))[1])
            patch.setattr(
                atomic, "write_json", lambda path, value: (seen.append(f"w {path.name}"), real_write(path, value))[1]
            )
            patch.setattr(os, "scandir", lambda path: (seen.append("list"), real_scan(path))[1])
            name = box.add(nouns.ticket(number)).ticket
            box.change(name, state=TicketState.RUNNING)
            box.change(name, state=TicketState.FAILED, outcome=Outcome.FAILED)
        return [words.replace(name, "TICKET") for words in seen]

    box = opened(home)
    short = touched(box, 1)
    for number in range(2, 100):
        box.add(nouns.ticket(number))
    assert touched(box, 100) == short
    assert "list" not in short


# Restoring


@pytest.mark.rule("C-245", "C-278")
def test_what_was_in_work_has_ended_and_what_waited_waits(home: Home) -> None:
    box = opened(home)
    for number in (1, 2, 3):
        box.add(nouns.ticket(number))
    box.add(nouns.ticket(4, mode=Mode.DIRECT))
    box.change("q-00000001", state=TicketState.RUNNING)
    looked = tickets.scan(home.layout, KEY).tickets
    again = opened(home)
    assert [(ticket.state, ticket.outcome) for ticket in again] == [
        (TicketState.FAILED, Outcome.UNKNOWN),
        (TicketState.QUEUED, None),
        (TicketState.QUEUED, None),
        (TicketState.FAILED, Outcome.NEVER_ARRIVED),
    ]
    first = again.get("q-00000001")
    assert first is not None
    assert first.detail == "the daemon stopped during this submission"
    assert first.error is not None
    assert first.error.hint == "`aj queue reconcile q-00000001` finds out what became of it"
    assert first.finished_at == NOW
    assert on_disk(home, "q-00000001")["outcome"] == "unknown"  # written before anyone is told
    assert [ticket.outcome for ticket in looked] == [ticket.outcome for ticket in again]
    assert again.whole("q-00000001").request == nouns.spec(1)


@pytest.mark.rule("C-245", "T44")
@pytest.mark.parametrize(
    ("line", "state", "outcome"),
    [
        (RecordState.INTENDED, TicketState.FAILED, Outcome.UNKNOWN),
        (RecordState.UNKNOWN, TicketState.FAILED, Outcome.UNKNOWN),
        (RecordState.SUBMITTED, TicketState.COMPLETED, Outcome.SUBMITTED),
        (RecordState.FAILED, TicketState.FAILED, Outcome.FAILED),
    ],
)
def test_an_outcome_that_reached_the_journal_is_known(
    home: Home, line: RecordState, state: TicketState, outcome: Outcome
) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    box.change(name, state=TicketState.RUNNING)
    told = Fault("Refused", "no", "said no")
    journal.append(home.layout, KEY, nouns.record(1, RecordState.INTENDED, azure_name="there"))
    if line is not RecordState.INTENDED:
        error = told if line is RecordState.FAILED else None
        journal.append(
            home.layout, KEY, nouns.record(1, line, azure_name="there", handle="near://x/there", error=error)
        )
    looked = tickets.scan(home.layout, KEY).tickets[0]
    found = opened(home).get(name)
    assert found is not None
    assert (found.state, found.outcome) == (looked.state, looked.outcome) == (state, outcome)
    if state is TicketState.COMPLETED:
        assert found.result == Submitted("there", "near://x/there")
        assert on_disk(home, name)["request"] is None
    if line is RecordState.FAILED:
        assert found.error == told


@pytest.mark.rule("C-246")
def test_a_look_restores_nothing_and_knows_a_living_owner(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    box.change(name, state=TicketState.RUNNING)
    before = home.layout.ticket(KEY, name).read_bytes()
    assert tickets.scan(home.layout, KEY).tickets[0].outcome is Outcome.UNKNOWN
    assert home.layout.ticket(KEY, name).read_bytes() == before
    assert not home.layout.ownership(KEY).exists()
    owner = lock.own(home.layout.ownership(KEY), "")
    assert tickets.scan(home.layout, KEY).tickets[0].state is TicketState.RUNNING
    owner.release()


DAMAGES = {
    "cut in half": lambda raw: raw[: len(raw) // 2],
    "empty": lambda raw: b"",
    "another ticket": lambda raw: raw.replace(b"q-00000002", b"q-0000000f"),
    "a list": lambda raw: b"[]",
    "an unknown state": lambda raw: raw.replace(b'"queued"', b'"dreaming"'),
    "bytes": lambda raw: b"\xff\x00" * 50,
    "too deep": lambda raw: b"[" * 100_000,
}


@pytest.mark.rule("C-245", "C-274")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_ticket_is_set_aside_and_the_others_go_on(home: Home, damage) -> None:
    box = opened(home)
    for number in (1, 2, 3):
        box.add(nouns.ticket(number))
    path = home.layout.ticket(KEY, "q-00000002")
    broken = damage(path.read_bytes())
    path.write_bytes(broken)
    seen = tickets.scan(home.layout, KEY)
    assert [ticket.ticket for ticket in seen.tickets] == ["q-00000001", "q-00000003"]
    assert str(path) in seen.warnings[0]
    assert path.exists()  # a look changes nothing
    again = Tickets(home.layout, KEY)
    (told,) = again.restore(now=NOW)
    aside = path.with_name("q-00000002.json.damaged-1")
    assert told.path == aside
    assert str(aside) in str(told)
    assert names(again) == ["q-00000001", "q-00000003"]
    again.add(nouns.ticket(2))
    assert aside.read_bytes() == broken  # the next ticket did not touch it
    assert str(aside) in tickets.scan(home.layout, KEY).warnings[0]
    assert [str(one.path) for one in Tickets(home.layout, KEY).restore(now=NOW)] == [str(aside)]


def test_a_ticket_whose_request_alone_is_damaged_is_listed_and_has_none(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    path = home.layout.ticket(KEY, name)
    path.write_bytes(path.read_bytes().replace(b'"argv":', b'"words":'))
    again = opened(home)
    assert names(again) == [name]
    assert again.whole(name).request is None
    assert again.whole(name).code == nouns.CODE


def test_a_newer_release_may_have_written_more(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    path = home.layout.ticket(KEY, name)
    path.write_text(json.dumps({**on_disk(home, name), "mood": "good"}))
    assert names(opened(home)) == [name]


def test_what_a_killed_writer_left_is_swept(home: Home) -> None:
    box = opened(home)
    box.add(nouns.ticket(1))
    left = home.layout.tickets(KEY) / ".99.abc.part"
    left.write_text("half")
    tickets.scan(home.layout, KEY)
    assert left.exists()
    opened(home)
    assert not left.exists()


@pytest.mark.rule("C-250")
def test_the_mark_of_a_retry_that_a_crash_prevented_is_made_up_for(home: Home) -> None:
    box = opened(home)
    over(box, 1)
    box.add(nouns.ticket(2, retried_from="q-00000001"))
    assert on_disk(home, "q-00000001")["retried_as"] is None
    opened(home)
    assert on_disk(home, "q-00000001")["retried_as"] == "q-00000002"


# The disk


@pytest.mark.rule("C-236", "C-275")
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_ticket_that_cannot_be_stored_does_not_exist(home: Home, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    box = opened(home)
    box.add(nouns.ticket(1))
    calls = 0
    real = getattr(os, call)

    def refuse(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2 or call == "replace":  # the second sync is that of the folder: the name is there already
            raise OSError(28, "No space left on device")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(AjError, match="No space left"):
            box.add(nouns.ticket(2))
    assert names(box) == ["q-00000001"]
    assert names(opened(home)) == ["q-00000001"]
    assert box.add(nouns.ticket(3)).sequence == 2


def test_a_change_that_cannot_be_written_has_not_happened(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket

    def full(*_: object) -> None:
        raise AjError("full")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", full)
        with pytest.raises(AjError, match="full"):
            box.change(name, state=TicketState.RUNNING)
    assert (box.waiting, box.running) == (1, 0)
    assert on_disk(home, name)["state"] == "queued"


@pytest.mark.rule("C-234")
def test_an_end_that_is_only_held_is_found_as_unknown_after_a_restart(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    box.change(name, state=TicketState.RUNNING)
    held = box.hold(name, state=TicketState.FAILED, outcome=Outcome.UNKNOWN, detail="there as x")
    assert box.get(name) == held
    assert on_disk(home, name)["state"] == "running"
    assert box.whole(name).request == nouns.spec(1)
    found = opened(home).get(name)
    assert found is not None
    assert found.outcome is Outcome.UNKNOWN


def test_a_file_that_somebody_removed_loses_its_request_only(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    home.layout.ticket(KEY, name).unlink()
    assert box.whole(name).request is None
    assert box.change(name, state=TicketState.RUNNING).request is None


@pytest.mark.rule("C-281")
def test_a_wide_ticket_is_known_and_narrowed_by_its_next_change(home: Home) -> None:
    box = opened(home)
    name = box.add(nouns.ticket(1)).ticket
    path = home.layout.ticket(KEY, name)
    path.chmod(0o644)
    assert box.is_wide(name)
    box.change(name, state=TicketState.RUNNING)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not box.is_wide(name)


# Retention


@pytest.mark.rule("C-252")
def test_the_newest_ends_are_kept_and_an_unknown_one_always(home: Home) -> None:
    box = opened(home, keep_final=3)
    over(box, 1, Outcome.UNKNOWN, at="2026-01-01T00:00:00.000000Z")
    for number in range(2, 9):
        over(box, number, at=f"2026-01-{number:02d}T00:00:00.000000Z")
        box.prune()
    box.add(nouns.ticket(9))
    due = ["q-00000001", "q-00000006", "q-00000007", "q-00000008", "q-00000009"]
    assert names(box) == due
    assert names(opened(home)) == due


@pytest.mark.rule("C-252")
def test_the_end_counts_and_not_the_beginning(home: Home) -> None:
    box = opened(home, keep_final=2)
    ends = {1: "2026-01-09", 2: "2026-01-01", 3: "2026-01-05", 4: "2026-01-07"}
    for number, day in ends.items():
        over(box, number, at=f"{day}T00:00:00.000000Z")
    again = opened(home, keep_final=2)
    again.prune()
    assert names(again) == ["q-00000001", "q-00000004"]


def test_a_disk_that_cannot_remove_keeps_and_goes_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    box = opened(home, keep_final=1)
    over(box, 1)
    over(box, 2)

    def refuse(_: Path) -> None:
        raise AjError("read-only")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "remove", refuse)
        box.prune()
    assert len(box) == 2
    box.prune()
    assert names(box) == ["q-00000002"]
