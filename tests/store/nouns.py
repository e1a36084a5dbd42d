"""Small specs, tickets and records for the tests of the store and the engine."""

from __future__ import annotations

from aj.model.code import CodePlan, CodeRef
from aj.model.job import JobSpec, Shape
from aj.model.record import Record, RecordState
from aj.model.ticket import Mode, Ticket, TicketState
from aj.store import tickets

CODE = CodeRef("d" * 64, "a" * 64, 3, 100, 60)


def aj_id(number: int) -> str:
    """The AJ ID of a number."""
    return f"{number:08x}"


def spec(number: int, *, service: str = "near", root: str = "/nowhere", env: dict[str, str] | None = None) -> JobSpec:
    """A spec that says little, with a secret in its environment."""
    return JobSpec(
        id=aj_id(number),
        name=f"work_{aj_id(number)}",
        service=service,
        template="t",
        experiment="exp",
        directory=root,
        project=None,
        shape=Shape(1, 0, 1, 0),
        argv=("python", "train.py", "--lr", "1e-3"),
        code=CodePlan(root),
        env=env if env is not None else {"API_KEY": "hunter2"},
        config={"target": {"service": service, "name": "pool"}},
    )


def ticket(number: int, *, mode: Mode = Mode.QUEUED, state: TicketState = TicketState.QUEUED, **more: object) -> Ticket:
    """A ticket that was just accepted."""
    asked = spec(number, service=str(more.get("service", "near")))
    known: dict[str, object] = {
        "ticket": tickets.name_of(asked.id),
        "id": asked.id,
        "mode": mode,
        "state": state,
        "name": asked.name,
        "service": asked.service,
        "template": asked.template,
        "sequence": number,
        "created_at": "2026-01-31T12:00:00.000000Z",
        "code": CODE,
        "env_names": ("API_KEY",),
        "request": asked,
    }
    return Ticket(**{**known, **more})  # type: ignore[arg-type]


def record(number: int, state: RecordState = RecordState.SUBMITTED, **more: object) -> Record:
    """A line of the journal."""
    known: dict[str, object] = {
        "ts": "2026-01-31T12:00:00.000000Z",
        "id": aj_id(number),
        "ticket": tickets.name_of(aj_id(number)),
        "mode": "queued",
        "state": state,
        "project": None,
        "template": "t",
        "service": "near",
        "name": f"work_{aj_id(number)}",
    }
    return Record(**{**known, **more})  # type: ignore[arg-type]
