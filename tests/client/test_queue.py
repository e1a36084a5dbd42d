"""Tickets as a caller sees them: listed, waited for, cancelled, retried."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base.errors import NotFound, OutcomeUnknown, Refused, TimedOut
from aj.client import queue
from aj.client.client import Client
from aj.client.line import AnswerLost, Line
from aj.model.ticket import Mode, TicketState
from tests.daemon.inside import Inside
from tests.daemon.small import spec


@pytest.fixture
def client(inside: Inside) -> Iterator[Client]:
    with Client(inside.home.settings) as client:
        for number, word in enumerate(("ok", "queued", "ok")):
            client.submissions.submit(spec(f"{number}" * 8, word), Mode.QUEUED)
        yield client


@pytest.mark.rule("C-214")
def test_tickets_are_listed_by_state_and_number(client: Client) -> None:
    assert [ticket.id[0] for ticket in client.queue.list().tickets] == ["0", "1", "2"]
    assert [ticket.id[0] for ticket in client.queue.list(states=[TicketState.QUEUED]).tickets] == ["1"]
    assert len(client.queue.list(states=[TicketState.QUEUED, TicketState.COMPLETED], limit=2).tickets) == 2


@pytest.mark.rule("C-248", "C-293", "C-294")
def test_a_wait_ends_with_the_ticket_or_its_time(client: Client) -> None:
    assert client.queue.wait("q-00000000", timeout_s=0).ticket.state is TicketState.COMPLETED
    with pytest.raises(TimedOut, match="q-11111111 is queued after 0 s") as error:
        client.queue.wait("q-11111111", timeout_s=0)
    assert error.value.exit_code == 124
    with pytest.raises(NotFound):
        client.queue.wait("q-nope", timeout_s=0)


@pytest.mark.rule("C-248")
def test_a_wait_is_asked_in_slices(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "HOLD_S", 0.05)
    threading.Timer(0.3, lambda: Client(client._line.settings).queue.cancel("q-11111111")).start()
    assert client.queue.wait("q-11111111").ticket.state is TicketState.CANCELED


@pytest.mark.rule("C-247", "C-295")
def test_a_queued_ticket_can_be_cancelled_and_another_not(client: Client) -> None:
    assert client.queue.cancel("q-11111111").ticket.state is TicketState.CANCELED
    with pytest.raises(Refused) as error:
        client.queue.cancel("q-00000000")
    assert error.value.hint == "`aj job cancel 00000000`"


@pytest.mark.rule("C-250", "C-296")
def test_a_retry_of_an_unknown_outcome_needs_force(client: Client) -> None:
    with pytest.raises(OutcomeUnknown) as error:
        client.queue.retry("q-00000000")
    assert error.value.exit_code == 6 and "reconcile" in str(error.value.hint)
    assert client.queue.retry("q-00000000", force=True).warnings == ("may exist twice",)
    assert client.queue.reconcile("q-00000000").ticket.id == "0" * 8


def test_projects_are_resumed(client: Client, inside: Inside, tmp_path: Path) -> None:
    project = inside.home.project()
    with Client(inside.home.settings, project) as other:
        assert other.queue.resume().detail == str(project.directory)
        assert other.queue.resume(all_projects=True).detail == "all"


@pytest.mark.rule("C-210")
def test_a_lost_answer_leaves_the_outcome_unknown(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object, **__: object) -> None:
        raise AnswerLost("cut")

    monkeypatch.setattr(Line, "change", lost)
    for act, hint in (
        (lambda: client.queue.cancel("q-11111111"), "`aj queue show q-11111111`"),
        (lambda: client.jobs.terminate("job-1"), "`aj status job-1`"),
        (lambda: client.queue.resume(), "`aj queue list`"),
    ):
        with pytest.raises(OutcomeUnknown) as error:
            act()
        assert error.value.hint == hint
