"""Routes of the queue: list tickets, wait for one, cancel, reconcile, retry and resume."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.daemon.routes.submissions import is_over
from aj.model.ticket import TicketState
from aj.wire import paths
from aj.wire.messages import TicketAnswer
from aj.wire.paths import Route

LIMIT = 200  # tickets of a list when nobody says how many


def listing(call: Call) -> Answer:
    """List tickets, oldest first."""
    states = call.words("state", TicketState)
    return reply(call.engine.queue_list(call.project, call.flag("all"), states, call.whole("limit", LIMIT)))


def show(call: Call) -> Answer:
    """Show one ticket."""
    return reply(call.engine.queue_show(call.project, call.name))


def wait(call: Call) -> Answer:
    """Wait until a ticket is final or the time is over; then show it as it stands."""

    def look(timeout_s: float) -> TicketAnswer:
        return call.engine.queue_wait(call.project, call.name, timeout_s)

    return reply(call.line.poll(look, is_over, call.seconds("timeout_s")))


def cancel(call: Call) -> Answer:
    """Cancel a queued ticket."""
    return reply(call.engine.queue_cancel(call.project, call.name))


def reconcile(call: Call) -> Answer:
    """Find out what became of a submission whose outcome is unknown."""
    return reply(call.engine.queue_reconcile(call.project, call.name))


def retry(call: Call) -> Answer:
    """Submit a failed ticket again, as a new one."""
    return reply(call.engine.queue_retry(call.project, call.name, call.flag("force")))


def resume(call: Call) -> Answer:
    """Open this project, or all of them, so that their tickets go on."""
    return reply(call.engine.queue_resume(None if call.flag("all") else call.project))


HANDLERS: Mapping[Route, Handler] = {
    paths.QUEUE: listing,
    paths.QUEUE_RESUME: resume,
    paths.TICKET: show,
    paths.TICKET_WAIT: wait,
    paths.TICKET_CANCEL: cancel,
    paths.TICKET_RECONCILE: reconcile,
    paths.TICKET_RETRY: retry,
}
