"""Submissions: promised once, followed to their outcome, and what becomes of a lost answer."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aj.base.errors import DaemonError, OutcomeUnknown, Refused
from aj.client.client import Client
from aj.client.submissions import draw_id
from aj.model.job import JobSpec
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.net import uds
from aj.wire import paths
from tests.conftest import RunningDaemon
from tests.daemon.inside import Inside
from tests.daemon.small import spec


@pytest.fixture
def client(inside: Inside) -> Client:
    return Client(inside.home.settings)


@pytest.mark.rule("C-213", "C-235")
def test_a_direct_one_is_followed_to_its_outcome(client: Client, tmp_path: Path) -> None:
    told: list[Ticket] = []
    threading.Timer(0.1, (tmp_path / "go").touch).start()
    answer = client.submissions.submit(
        spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT, wait=True, accepted=told.append
    )
    assert [ticket.state for ticket in told] == [TicketState.RUNNING]
    assert answer.ticket.state is TicketState.COMPLETED
    assert answer.warnings == ("a warning",)
    client.close()


@pytest.mark.rule("C-149")
def test_a_taken_id_is_drawn_anew(client: Client) -> None:
    drawn: list[str] = []

    def again(aj_id: str) -> JobSpec:
        drawn.append(aj_id)
        return spec("f" + aj_id[1:], "taken")

    answer = client.submissions.submit(spec("0" * 8, "taken"), Mode.DIRECT, wait=True, again=again)
    assert len(drawn) == 1
    assert answer.ticket.id == "f" + drawn[0][1:]
    with pytest.raises(Refused, match="taken"):
        client.submissions.submit(spec("0" * 8, "taken"), Mode.DIRECT)
    with pytest.raises(Refused, match="8 ids in a row"):
        client.submissions.submit(
            spec("0" * 8, "taken"), Mode.DIRECT, again=lambda aj_id: spec("0" + aj_id[1:], "taken")
        )
    client.close()


@pytest.mark.rule("C-149")
def test_ids_are_eight_hexadecimal_characters() -> None:
    drawn = {draw_id() for _ in range(200)}
    assert len(drawn) == 200
    assert all(len(one) == 8 and int(one, 16) >= 0 and one == one.lower() for one in drawn)


@pytest.mark.rule("C-210")
def test_a_lost_answer_is_asked_for_and_found(small: RunningDaemon) -> None:
    client = small.client()
    first = client.daemon.start().hello.instance
    answer = client.submissions.submit(spec("0" * 8, "dies-after"), Mode.DIRECT)
    assert answer.ticket.id == "0" * 8
    assert client.daemon.start().hello.instance != first
    assert len(client.queue.list().tickets) == 1


@pytest.mark.rule("C-210")
def test_a_daemon_that_died_before_it_accepted_did_nothing(small: RunningDaemon) -> None:
    client = small.client()
    with pytest.raises(DaemonError, match="nothing was submitted"):
        client.submissions.submit(spec("0" * 8, "dies-before"), Mode.DIRECT)
    assert client.queue.list().tickets == ()


@pytest.mark.rule("C-210", "C-209")
def test_an_outcome_that_nobody_knows_is_told_and_nothing_is_sent_again(
    client: Client, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.queue.list()
    monkeypatch.setattr(paths, "SILENCE_S", 0.2)  # less than a sign of life takes here
    with pytest.raises(OutcomeUnknown) as error:
        client.submissions.submit(spec("0" * 8, "pack", str(tmp_path / "go")), Mode.DIRECT)
    assert error.value.hint == "`aj queue reconcile q-00000000`"
    assert error.value.exit_code == 6
    monkeypatch.undo()
    (tmp_path / "go").touch()
    assert inside.engine.queue_wait(None, _accepted(inside), 10).ticket.outcome is Outcome.SUBMITTED
    assert inside.engine.submits == 1
    client.close()


def _accepted(inside: Inside) -> str:
    with inside.engine._changed:
        assert inside.engine._changed.wait_for(lambda: "q-00000000" in inside.engine._tickets, 10)
    return "q-00000000"


@pytest.mark.rule("C-210")
def test_a_change_that_was_not_taken_is_sent_again(
    client: Client, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.queue.list()
    really, calls = uds.Wire.change, list[str]()

    def once_refused(self: uds.Wire, *args: object, **named: object) -> uds.Answer:
        calls.append("sent")
        if len(calls) == 1:
            raise uds.NotSent("gone", absent=True)
        return really(self, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(uds.Wire, "change", once_refused)
    assert client.submissions.submit(spec("0" * 8, "ok"), Mode.DIRECT).ticket.id == "0" * 8
    assert (len(calls), inside.engine.submits) == (2, 1)
    client.close()


@pytest.mark.rule("C-222")
def test_a_stopping_daemon_refuses(client: Client, inside: Inside) -> None:
    client.queue.list()
    inside.gate.retiring.set()
    with pytest.raises(DaemonError) as error:
        client.submissions.submit(spec("0" * 8, "ok"), Mode.DIRECT)
    assert error.value.code == "retiring"
    client.close()
