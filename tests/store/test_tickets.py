"""Anybody may look at tickets: they are found, counted, listed and read, and nothing is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base.errors import UserError
from aj.model.code import CodeRef
from aj.model.ticket import Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.store import tickets
from aj.store.queue import Tickets
from aj.wire import codec
from tests.conftest import Home
from tests.store import nouns

KEY = "project-000000000000"
NOW = "2026-02-01T00:00:00.000000Z"


def opened(home: Home, **more: int) -> Tickets:
    box = Tickets(home.layout, KEY, **more)
    box.restore(now=NOW)
    return box


def test_a_ticket_is_found_in_whichever_project_holds_it(home: Home) -> None:
    for key in ("b-1", "a-1"):
        Tickets(home.layout, key).add(nouns.ticket(1))
    Tickets(home.layout, "c-1").add(nouns.ticket(2))
    assert tickets.keys(home.layout) == ["a-1", "b-1", "c-1"]
    assert tickets.key_of(home.layout, "q-00000001", "b-1") == "b-1"
    assert tickets.key_of(home.layout, "q-00000002", "b-1") == "c-1"
    assert tickets.key_of(home.layout, "q-00000003", "b-1") is None


@pytest.mark.rule("C-292")
@pytest.mark.parametrize("word", ["../queue", "", "a/b", "q-", "q-0000000G", "q-00000001\n", "q-000000011", "project"])
def test_a_word_that_is_no_ticket_names_none(home: Home, word: str) -> None:
    Tickets(home.layout, KEY).add(nouns.ticket(1))
    assert not tickets.is_name(word)
    assert tickets.key_of(home.layout, word, KEY) is None
    assert tickets.no_such(word).exit_code == 3


def test_an_empty_state_folder_has_no_queue(home: Home) -> None:
    assert tickets.keys(home.layout) == []
    assert tickets.scan(home.layout, KEY) == tickets.Scan(())
    assert (tickets.stamp(home.layout, KEY), tickets.count_queued(home.layout, KEY)) == (0, 0)


def test_waiting_tickets_are_counted_without_opening(home: Home) -> None:
    box = opened(home)
    for number in (1, 2, 3):
        box.add(nouns.ticket(number))
    before = tickets.stamp(home.layout, KEY)
    box.change("q-00000002", state=TicketState.RUNNING)
    assert tickets.count_queued(home.layout, KEY) == 2
    assert tickets.stamp(home.layout, KEY) != before


@pytest.mark.rule("C-029")
def test_a_list_shows_the_queued_and_of_the_direct_the_open_and_the_unknown() -> None:
    made = [
        nouns.ticket(1, state=TicketState.COMPLETED, outcome=Outcome.SUBMITTED),
        nouns.ticket(2, mode=Mode.DIRECT, state=TicketState.COMPLETED, outcome=Outcome.SUBMITTED),
        nouns.ticket(3, mode=Mode.DIRECT, state=TicketState.RUNNING),
        nouns.ticket(4, mode=Mode.DIRECT, state=TicketState.FAILED, outcome=Outcome.UNKNOWN),
        nouns.ticket(5),
    ]

    def shown(*states: str, limit: int = 0) -> list[int]:
        return [ticket.sequence for ticket in tickets.chosen(made, states, limit)[0]]

    assert shown() == [1, 3, 4, 5]
    assert shown("completed") == [1, 2]
    assert shown("unknown", "queued") == [4, 5]
    assert tickets.chosen(made, (), 3) == ([made[2], made[3], made[4]], 1)
    assert tickets.chosen(made, (), 1) == ([made[2]], 3)
    with pytest.raises(UserError, match="`success` is no state") as caught:
        shown("success")
    assert "never-arrived" in str(caught.value.hint)


TICKETS = st.builds(
    nouns.ticket,
    st.integers(0, 2**32 - 1),
    mode=st.sampled_from(Mode),
    detail=st.none() | st.text(max_size=5),
    error=st.none() | st.builds(Fault, st.text(max_size=5), st.text(max_size=5), st.text(max_size=5)),
    code=st.none() | st.builds(CodeRef, st.text(max_size=3), st.text(max_size=3), *[st.integers(0)] * 3),
    git=st.none() | st.dictionaries(st.text(max_size=3), st.booleans(), max_size=2),
    result=st.none() | st.builds(Submitted, st.none() | st.text(max_size=3), st.text(max_size=3)),
)


@given(TICKETS)
@settings(max_examples=60, deadline=None)
def test_a_ticket_is_read_as_it_was_written(made: Ticket) -> None:
    assert codec.load(Ticket, json.loads(json.dumps(codec.dump(made))), lenient=True) == made


def test_a_stray_file_is_left_alone(home: Home) -> None:
    box = opened(home)
    box.add(nouns.ticket(1))
    stray = home.layout.tickets(KEY) / "notes.json"
    stray.write_text("mine")
    assert opened(home).restore(now=NOW) == []
    assert tickets.scan(home.layout, KEY).warnings == ()
    assert stray.read_text() == "mine"
