"""Tickets and records as a daemon would have left them, for commands that only read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aj.base.clock import rfc3339
from aj.model.code import CodeRef
from aj.model.job import Shape
from aj.model.record import Record, RecordState
from aj.model.ticket import Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.store import journal
from aj.store.queue import Tickets
from aj.store.tickets import name_of
from tests.conftest import Home

CODE = CodeRef("d" * 64, "a" * 64, 3, 1200, 700)
BEGAN = 1_790_000_000.0


def record(aj_id: str, **changes: Any) -> Record:
    """A record of a submission that went well."""
    made = Record(
        ts=rfc3339(BEGAN),
        id=aj_id,
        ticket=name_of(aj_id),
        mode="direct",
        state=RecordState.SUBMITTED,
        project=None,
        template="local",
        service="local",
        name=f"train_{aj_id}",
        shape=Shape(2, 0, 4, 0),
        command="python3 train.py",
        code=CODE,
    )
    return replace(made, **changes)


def write_journal(home: Home, key: str, *records: Record) -> None:
    """Append records to a project's journal."""
    for one in records:
        journal.append(home.layout, key, one)


def ticket(aj_id: str, **changes: Any) -> Ticket:
    """A ticket that was submitted."""
    made = Ticket(
        ticket=name_of(aj_id),
        id=aj_id,
        mode=Mode.QUEUED,
        state=TicketState.COMPLETED,
        name=f"train_{aj_id}",
        service="local",
        template="local",
        sequence=0,
        created_at=rfc3339(BEGAN),
        outcome=Outcome.SUBMITTED,
        started_at=rfc3339(BEGAN + 1),
        finished_at=rfc3339(BEGAN + 2),
        code=CODE,
        result=Submitted(aj_id, f"local://jobs/{aj_id}"),
        env_names=("A",),
    )
    return replace(made, **changes)


def write_tickets(home: Home, key: str, *tickets: Ticket, path: str | None = None) -> None:
    """Put tickets into a project's queue."""
    owner = Tickets(home.layout, key)
    owner.remember_project(path)
    for one in tickets:
        owner.add(one)


WAITING = {"state": TicketState.QUEUED, "outcome": None, "started_at": None, "finished_at": None, "result": None}
LOST = {"state": TicketState.FAILED, "outcome": Outcome.UNKNOWN, "result": None, "detail": "the answer was lost"}
REFUSED = {
    "state": TicketState.FAILED,
    "outcome": Outcome.FAILED,
    "result": None,
    "error": Fault("Refused", "too-large", "larger than this machine", "take less"),
}
