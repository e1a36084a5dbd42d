"""Finding out what became of a submission whose outcome is unknown. Looks only; sends nothing.

A job that our own engine drives is on this disk or it is not: one look settles it. Another service is
asked twice, some seconds apart, before an absence is believed, since what was created a moment ago
may not yet be listed.
"""

from __future__ import annotations

import threading

from aj.base.errors import AjError, NotFound, OutcomeUnknown, UserError
from aj.engine.desk import Desk, Ending
from aj.engine.means import Means
from aj.engine.records import record_of
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.record import RecordState
from aj.model.ticket import Fault, Outcome, Submitted, Ticket, TicketState
from aj.store import journal

APART_S = 10.0


def settle(ticket: Ticket, desk: Desk, means: Means, stop: threading.Event) -> Ticket:
    """Find out about a ticket of unknown outcome, write it down, and return the ticket.

    Waits some seconds for a remote service; `stop` cuts that short. Raises OutcomeUnknown with the
    reason when it stays unknown, AjError when the disk refuses; nothing has changed then.
    """
    spec = ticket.request
    if spec is None:
        raise OutcomeUnknown(f"{ticket.ticket}: its request can no longer be read, so nobody can be asked")
    handle = _look(spec, desk, means, stop)
    ending = _ending(ticket, handle)
    record = record_of(
        ticket,
        spec,
        desk.path,
        RecordState.SUBMITTED if handle else RecordState.FAILED,
        now=means.clock.now(),
        azure_name=handle.name if handle else None,
        handle=handle,
        error=ending.error,
        outcome=ending.outcome,
        note="found by reconcile" if handle else "not found by reconcile",
    )
    desk.note(journal.append(means.layout, desk.key, record))
    return desk.settle(ticket.ticket, ending)


def _look(spec: JobSpec, desk: Desk, means: Means, stop: threading.Event) -> Handle | None:
    """Return where the job is, None when it is definitely nowhere. Raises OutcomeUnknown."""
    try:
        if means.places.traits(spec.service).driven:
            workload = means.jobs.find(spec.id)
            return Handle(workload.service, "jobs", workload.id) if workload else None
        return _look_twice(spec, means, stop)
    except (NotFound, UserError, OutcomeUnknown) as error:
        if _knows_no_place(error) and _was_never_sent(spec, desk, means):
            return None
        raise _silent(spec, error) from error
    except AjError as error:
        raise _silent(spec, error) from error


def _knows_no_place(error: AjError) -> bool:
    """Tell whether the trouble is where to look, and not that nobody answered there."""
    return not isinstance(error, OutcomeUnknown) or error.code == "not-remembered"


def _was_never_sent(spec: JobSpec, desk: Desk, means: Means) -> bool:
    """Tell whether the journal rules out that anything was sent: `intended` is written there before.

    An earlier look may have found that out already, and died before it was written into the ticket.
    """
    record = journal.last(means.layout, desk.key, [spec.id]).get(spec.id)
    return record is None or record.outcome == Outcome.NEVER_ARRIVED


def _silent(spec: JobSpec, error: AjError) -> OutcomeUnknown:
    if isinstance(error, OutcomeUnknown):
        return error
    return OutcomeUnknown(f"{spec.service} did not tell: {error.message}", details=error.details)


def _look_twice(spec: JobSpec, means: Means, stop: threading.Event) -> Handle | None:
    backend = means.places.backend(spec.service)
    handle = backend.find(spec)
    if handle is not None:
        return handle
    if means.clock.wait(stop, APART_S):
        raise OutcomeUnknown("the daemon is about to leave")
    return backend.find(spec)


def _ending(ticket: Ticket, handle: Handle | None) -> Ending:
    if handle is not None:
        return Ending(TicketState.COMPLETED, Outcome.SUBMITTED, Submitted(handle.name, str(handle), handle.portal_url))
    error = Fault("AjError", "never-arrived", "the submission never arrived", f"`aj queue retry {ticket.ticket}`")
    return Ending(TicketState.FAILED, Outcome.NEVER_ARRIVED, detail=error.message, error=error)
