"""The loop that carries queued submissions out, one at a time, oldest first; and the same for a direct one.

A project has at most one such loop, in a thread that ends when nothing waits. Whatever goes wrong with
one submission is written into its ticket, and the next one is taken.
"""

from __future__ import annotations

import logging
import threading
import traceback

from aj.base import crash
from aj.base.errors import AjError
from aj.engine.attempt import Attempt
from aj.engine.desk import Desk, Ending
from aj.engine.means import Means
from aj.engine.records import fault_of
from aj.model.ticket import Outcome, Ticket, TicketState

PAUSE_S = 10.0  # before a disk that refused is asked again
LOG = logging.getLogger("aj.engine.worker")


class Worker:
    """The loop of one desk."""

    def __init__(self, desk: Desk, means: Means) -> None:
        self._desk = desk
        self._means = means
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """See to it that waiting tickets are being worked on. Returns at once."""
        with self._desk.changed:
            if self._thread is not None:
                self._desk.changed.notify_all()
                return
            if self._desk.is_draining or not self._desk.counts()[1]:
                return
            self._thread = threading.Thread(target=self._run, name=f"queue {self._desk.key}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (ticket := self._next()) is not None:
            carry_out(ticket, self._desk, self._means)

    def _next(self) -> Ticket | None:
        """Take the next ticket; None, and the thread is over, when there is none."""
        with self._desk.changed:
            while True:
                crash.point("worker.before-running")
                try:
                    ticket = self._desk.take_next()
                except AjError as error:
                    self._desk.note(f"the queue stands still: {error.message}")
                    LOG.error("queue %s stands still: %s", self._desk.key, error)
                    self._desk.changed.wait(PAUSE_S)
                    continue
                if ticket is None:
                    self._thread = None
                return ticket


def start_direct(ticket: Ticket, desk: Desk, means: Means) -> None:
    """Carry out a direct submission in a thread of its own, past everything that is queued."""
    threading.Thread(target=_run_direct, args=(ticket, desk, means), name=ticket.ticket, daemon=True).start()


def _run_direct(ticket: Ticket, desk: Desk, means: Means) -> None:
    crash.point("worker.before-running")
    try:
        running = desk.take(ticket.ticket)
    except AjError as error:  # the disk: nothing was sent, and whoever waits is told why
        ending = Ending(TicketState.FAILED, Outcome.NEVER_ARRIVED, detail=error.message, error=fault_of(error))
        desk.finish(ticket.ticket, ending)
        return
    if running is not None:
        carry_out(running, desk, means)


def carry_out(ticket: Ticket, desk: Desk, means: Means) -> None:
    """Submit a ticket that is in work and write down how that ended, whatever happens."""
    crash.point("worker.after-running")
    attempt = Attempt(ticket, desk, means)
    try:
        ending = attempt.carry_out()
    except Exception as error:  # noqa: BLE001  the net: one bad submission must not stop the line
        trace = "\n" + traceback.format_exc() if means.debug else ""
        LOG.error("%s: %s: %s%s", ticket.ticket, type(error).__name__, error, trace)
        ending = attempt.unexpected(error)
    desk.finish(ticket.ticket, ending)
    crash.point("worker.after-completed")
