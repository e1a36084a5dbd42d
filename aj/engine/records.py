"""What is kept of a submission: its line of the journal, and an error without secrets."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from aj.base import redact
from aj.base.clock import rfc3339
from aj.base.errors import AjError
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.record import Record, RecordState
from aj.model.ticket import Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.version import VERSION
from aj.wire import codec


def fault_of(error: AjError) -> Fault:
    """Return an error as it is kept: without secrets, with its place among the details."""
    details: dict[str, object] = dict(error.details)
    if error.place is not None:
        details |= {"file": error.place.file, "line": error.place.line, "column": error.place.column}
    return Fault(
        type=type(error).__name__,
        code=error.code,
        message=redact.text(error.message),
        hint=error.hint,
        details={name: _plain(value) for name, value in details.items()},
    )


def _plain(value: object) -> Json:
    if isinstance(value, str):
        return redact.text(value)
    try:
        return codec.dump(value)
    except (TypeError, ValueError):
        return str(value)


def record_of(
    ticket: Ticket,
    spec: JobSpec,
    project: str | None,
    state: RecordState,
    *,
    now: float,
    azure_name: str | None = None,
    handle: Handle | None = None,
    error: Fault | None = None,
    outcome: Outcome | None = None,
    note: str | None = None,
) -> Record:
    """Return a line for the journal. Values of environment variables are not in it."""
    settled = state is not RecordState.INTENDED
    return Record(
        ts=rfc3339(now),
        id=ticket.id,
        ticket=ticket.ticket,
        mode=ticket.mode.value,
        state=state,
        project=project,
        template=spec.template,
        service=spec.service,
        name=spec.name,
        outcome=(outcome.value if outcome else state.value) if settled else None,
        azure_name=azure_name,
        handle=str(handle) if handle else None,
        portal_url=handle.portal_url if handle else None,
        experiment=spec.experiment,
        target=_target(spec),
        sku=spec.sku,
        shape=spec.shape,
        image=spec.image,
        command=redact.text(shlex.join(spec.argv)),
        env_names=ticket.env_names,
        code=ticket.code,
        git=ticket.git,
        error=error,
        note=note,
        agent=ticket.agent,
        session=ticket.session,
        session_title=ticket.session_title,
        version=VERSION,
    )


def _target(spec: JobSpec) -> dict[str, Json]:
    """The plain words of the template's `target`: where it goes, as far as the user said so."""
    target = spec.config.get("target")
    if not isinstance(target, Mapping):
        return {}
    return {
        key: redact.text(value) if isinstance(value, str) else value
        for key, value in target.items()
        if isinstance(value, str | int | float | bool)
    }


def ticket_of(record: Record) -> Ticket:
    """Return a ticket as the journal remembers it."""
    submitted = record.state is RecordState.SUBMITTED
    outcome = Outcome.SUBMITTED if submitted else Outcome.UNKNOWN
    if record.state is RecordState.FAILED:
        outcome = Outcome(record.outcome) if record.outcome in tuple(Outcome) else Outcome.FAILED
    result = Submitted(record.azure_name, record.handle, record.portal_url) if submitted and record.handle else None
    return Ticket(
        ticket=record.ticket,
        id=record.id,
        mode=Mode.DIRECT if record.mode == Mode.DIRECT else Mode.QUEUED,
        state=TicketState.COMPLETED if submitted else TicketState.FAILED,
        name=record.name,
        service=record.service,
        template=record.template,
        sequence=0,
        created_at=record.ts,
        outcome=outcome,
        finished_at=record.ts,
        detail=record.note,
        error=record.error,
        code=record.code,
        result=result,
        env_names=record.env_names,
        git=record.git,
        agent=record.agent,
        session=record.session,
        session_title=record.session_title,
    )
