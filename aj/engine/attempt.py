"""The one try to submit one ticket: `intended` before anything is sent, exactly one true end after it.

An error that can only mean that nothing happened is a failure; anything else, once something may have
been sent, is unknown, and nobody tries again by himself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aj.backend.protocol import Prepares
from aj.base import crash, redact
from aj.base.errors import AjError, OutcomeUnknown, Refused, TimedOut, Unavailable
from aj.engine.desk import Desk, Ending
from aj.engine.means import Means
from aj.engine.records import fault_of, record_of
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.record import RecordState
from aj.model.ticket import Fault, Outcome, Submitted, Ticket, TicketState
from aj.store import journal


class Attempt:
    """The one try to submit one ticket that is in work."""

    def __init__(self, ticket: Ticket, desk: Desk, means: Means) -> None:
        self._ticket = ticket
        self._desk = desk
        self._means = means
        self._may_have_been_sent = False
        self._name: str | None = None  # what the job is called over there, once that is settled
        self._instances: tuple[str, ...] = ()

    def carry_out(self) -> Ending:
        """Submit, and return how that ended. Lets only the unexpected through."""
        ticket = self._ticket
        if ticket.request is None:
            return _failed(Refused(f"the request of {ticket.ticket} can no longer be read"))
        with self._means.steps.hearing(ticket.id, lambda step: self._desk.tell(ticket.ticket, step)):
            return self._carry_out(ticket.request)

    def _carry_out(self, spec: JobSpec) -> Ending:
        try:
            self._name, send = self._plan(spec)
            self._note(spec, RecordState.INTENDED)
        except AjError as error:
            return self._has_failed(spec, error)
        crash.point("worker.after-intended")
        self._may_have_been_sent = True
        try:
            handle = send()
        except AjError as error:
            return self._has_failed(spec, error) if is_definite(error) else self._is_unknown(spec, error)
        crash.point("worker.after-submit")
        return self._was_submitted(spec, handle)

    def unexpected(self, error: Exception) -> Ending:
        """Say how a try ended that broke off with an error of the program itself."""
        words = AjError(f"{type(error).__name__}: {error}", code="unexpected")
        spec = self._ticket.request
        if spec is None or not self._may_have_been_sent:
            return self._has_failed(spec, words)
        return self._is_unknown(spec, words)

    def _plan(self, spec: JobSpec) -> tuple[str | None, Callable[[], Handle]]:
        """Return the name the job will have, if that is known, and the call that sends it. Sends no job."""
        means, ticket = self._means, self._ticket
        if means.places.traits(spec.service).driven:
            settled = means.jobs.settle(spec)
            return spec.id, lambda: means.jobs.admit(
                settled,
                ticket.code,
                ticket=ticket.ticket,
                project_key=self._desk.key,
                accepted_at=ticket.created_at,
                mode=ticket.mode,
            )
        backend = means.places.backend(spec.service)
        request = backend.plan(spec, ticket.code, accepted_at=ticket.created_at.replace("Z", "+00:00"))
        self._instances = request.instances
        if isinstance(backend, Prepares):
            backend.prepare(request)
        return request.name if request.is_named else None, lambda: backend.submit(request)

    def _note(
        self,
        spec: JobSpec,
        state: RecordState,
        *,
        handle: Handle | None = None,
        error: Fault | None = None,
    ) -> None:
        record = record_of(
            self._ticket,
            spec,
            self._desk.path,
            state,
            now=self._means.clock.now(),
            azure_name=_told_name(handle) if handle else self._name,
            handle=handle,
            error=error,
            note=handle.note if handle else None,
        )
        self._desk.note(journal.append(self._means.layout, self._desk.key, record))

    def _was_submitted(self, spec: JobSpec, handle: Handle) -> Ending:
        result = Submitted(
            azure_name=_told_name(handle),
            handle=str(handle),
            portal_url=handle.portal_url,
            note=handle.note,
            matched_instances=self._instances,
            uploaded_bytes=handle.uploaded_bytes,
        )
        try:
            self._note(spec, RecordState.SUBMITTED, handle=handle)
        except AjError as error:
            words = f"submitted as {handle.name}, but the record of it is missing: {error.message}"
            return Ending(
                TicketState.FAILED, Outcome.UNKNOWN, result, words, fault_of(unknown(self._ticket.ticket, words))
            )
        crash.point("worker.after-submitted")
        return Ending(TicketState.COMPLETED, Outcome.SUBMITTED, result)

    def _has_failed(self, spec: JobSpec | None, error: AjError) -> Ending:
        ending = _failed(error)
        return self._with_record(spec, RecordState.FAILED, ending)

    def _is_unknown(self, spec: JobSpec, error: AjError) -> Ending:
        found = error if isinstance(error, OutcomeUnknown) else unknown(self._ticket.ticket, error.message, error)
        if found.hint is None:
            found.hint = _reconcile(self._ticket.ticket)
        ending = Ending(TicketState.FAILED, Outcome.UNKNOWN, detail=found.message, error=fault_of(found))
        return self._with_record(spec, RecordState.UNKNOWN, ending)

    def _with_record(self, spec: JobSpec | None, state: RecordState, ending: Ending) -> Ending:
        if spec is None:
            return ending
        try:
            self._note(spec, state, error=ending.error)
        except AjError as error:
            return replace(ending, detail=f"{ending.detail}; the record of it is missing: {error.message}")
        return ending


def _told_name(handle: Handle) -> str | None:
    return handle.name if handle.is_named else None


def is_definite(error: AjError) -> bool:
    """Tell whether an error of a submission means for certain that there is no job.

    A service that broke off or fell silent may have made one: no answer is not a no.
    """
    return not isinstance(error, OutcomeUnknown | Unavailable | TimedOut)


def unknown(ticket: str, words: str, cause: AjError | None = None) -> OutcomeUnknown:
    """Say that a submission may have happened, and how to find out."""
    return OutcomeUnknown(words, hint=_reconcile(ticket), details=cause.details if cause else None)


def _reconcile(ticket: str) -> str:
    return f"`aj queue reconcile {ticket}` finds out what became of it"


def _failed(error: AjError) -> Ending:
    return Ending(TicketState.FAILED, Outcome.FAILED, detail=redact.text(error.message), error=fault_of(error))
