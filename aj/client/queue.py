"""The queue: tickets of this project or of all, one of them, and what can be done to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from aj.base.clock import SYSTEM
from aj.base.errors import OutcomeUnknown, TimedOut, UserError
from aj.client.line import AnswerLost, Line, Query
from aj.model.ticket import Ticket, TicketState
from aj.wire import paths
from aj.wire.messages import Done, TicketAnswer, TicketList
from aj.wire.paths import Route

HOLD_S = 600.0  # one question waits so long; then it is asked again
T = TypeVar("T")


def named(word: str, noun: str) -> str:
    """Return a word that names something. Raises UserError when it is empty."""
    if not word:
        raise UserError(f"an empty {noun} names nothing", code="empty-id")
    return word


class Queue:
    """What a caller can do with tickets."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def list(self, *, all_projects: bool = False, states: Sequence[TicketState] = (), limit: int = 200) -> TicketList:
        """List tickets, oldest first; a limit of 0 means all of them."""
        query: Query = {"all": 1 if all_projects else None, "state": ",".join(states) or None, "limit": limit}
        return self._line.read(TicketList, paths.QUEUE, query=query)

    def show(self, ticket: str) -> TicketAnswer:
        """Return one ticket. Raises NotFound."""
        return self._line.read(TicketAnswer, paths.TICKET, named(ticket, "ticket"))

    def wait(self, ticket: str, *, timeout_s: float | None = None) -> TicketAnswer:
        """Wait until a ticket is final, also across a restart of the daemon. Raises NotFound, TimedOut."""
        begun = SYSTEM.monotonic()
        while True:
            left_s = HOLD_S if timeout_s is None else max(0.0, begun + timeout_s - SYSTEM.monotonic())
            query: Query = {"timeout_s": round(min(left_s, HOLD_S), 3)}
            answer = self._line.read(TicketAnswer, paths.TICKET_WAIT, named(ticket, "ticket"), query=query)
            if answer.ticket.state.is_final:
                return answer
            if timeout_s is not None and SYSTEM.monotonic() - begun >= timeout_s:
                raise _timed_out(answer.ticket, timeout_s)

    def cancel(self, ticket: str) -> TicketAnswer:
        """Cancel a queued ticket: after the answer it never runs. Raises NotFound, Refused, OutcomeUnknown."""
        return self._change(TicketAnswer, paths.TICKET_CANCEL, ticket)

    def retry(self, ticket: str, *, force: bool = False) -> TicketAnswer:
        """Submit a failed ticket again, as a new one. Raises NotFound, Refused, OutcomeUnknown."""
        return self._change(TicketAnswer, paths.TICKET_RETRY, ticket, query={"force": 1 if force else None})

    def reconcile(self, ticket: str) -> TicketAnswer:
        """Find out what became of a submission whose outcome is unknown. Raises NotFound, OutcomeUnknown."""
        return self._change(TicketAnswer, paths.TICKET_RECONCILE, ticket)

    def resume(self, *, all_projects: bool = False) -> Done:
        """Open this project, or all, so that their tickets go on."""
        query: Query = {"all": 1 if all_projects else None}
        try:
            return self._line.change(Done, paths.QUEUE_RESUME, query=query)
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer was lost: {lost}", hint="`aj queue list`") from lost

    def _change(self, kind: type[T], route: Route, ticket: str, query: Query | None = None) -> T:
        try:
            return self._line.change(kind, route, named(ticket, "ticket"), query=query)
        except AnswerLost as lost:
            raise OutcomeUnknown(
                f"the answer about ticket {ticket} was lost: {lost}",
                hint=f"`aj queue show {ticket}`",
                details={"ticket": ticket},
            ) from lost


def _timed_out(ticket: Ticket, timeout_s: float) -> TimedOut:
    return TimedOut(
        f"{ticket.ticket} is {ticket.state} after {timeout_s:g} s; nothing was stopped",
        details={"ticket": ticket.ticket, "state": ticket.state.value},
    )
