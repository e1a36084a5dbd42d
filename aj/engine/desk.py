"""One project's queue in the hands of this daemon: who may do what to a ticket, and when.

A desk owns the project for the life of the daemon, so no two daemons run one ticket. Every change of
a ticket is made here under one condition, which is what makes a cancel win over a start: whichever
comes first is on disk before the other one looks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, Refused
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.model.step import Step
from aj.model.ticket import Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.store import lock, queue, tickets
from aj.store.layout import Layout
from aj.store.queue import Tickets
from aj.wire import codec

FOLLOWED = 100  # submissions whose steps are kept for those who follow them: the newest
NOTES = 20  # warnings kept for the next command of this project


@dataclass(frozen=True)
class Ending:
    """How one try to submit ended."""

    state: TicketState
    outcome: Outcome
    result: Submitted | None = None
    detail: str | None = None
    error: Fault | None = None


def bare(ticket: Ticket) -> Ticket:
    """Return a ticket as it may be told: without its request, which holds environment values."""
    return replace(ticket, request=None)


class Desk:
    """The queue of one project. Safe between threads; waiting is by notice, never by looking again and again."""

    def __init__(
        self,
        layout: Layout,
        key: str,
        path: str | None,
        clock: Clock,
        publish: Callable[[str, str, Mapping[str, Json]], None],
        *,
        keep_final: int = queue.KEEP_FINAL,
    ) -> None:
        self.key = key
        self.path = path
        self.changed = threading.Condition()
        self.is_draining = False
        self.touched_at = clock.monotonic()
        self._layout = layout
        self._clock = clock
        self._publish = publish
        self._tickets = Tickets(layout, key, keep_final=keep_final)
        self._ownership: lock.Ownership | None = None
        self._is_closed = False
        self._notes: list[str] = []
        self._steps: dict[str, list[tuple[int, Step]]] = {}
        self._damaged: list[tickets.Damage] = []

    def open(self, note: str) -> None:
        """Become the owner of the project and take up its tickets as they were left.

        `note` tells others where this daemon can be reached. Raises Refused naming another owner,
        AjError when the state directory cannot be written.
        """
        ownership = lock.own(self._layout.ownership(self.key), note)
        try:
            with self.changed:
                self._damaged = self._tickets.restore(now=rfc3339(self._clock.now()))
        except BaseException:
            ownership.release()
            raise
        self._ownership = ownership

    # What others ask

    def all(self) -> list[Ticket]:
        """Return every ticket, oldest first."""
        with self.changed:
            return list(self._tickets)

    def get(self, name: str) -> Ticket | None:
        """Return a ticket, or None."""
        with self.changed:
            return self._tickets.get(name)

    def find(self, name: str) -> Ticket:
        """Return a ticket. Raises NotFound."""
        ticket = self.get(name)
        if ticket is None:
            raise tickets.no_such(name)
        return ticket

    def whole(self, name: str) -> Ticket:
        """Return a ticket with its request, as it is on disk. Raises NotFound."""
        with self.changed:
            if self._tickets.get(name) is None:
                raise tickets.no_such(name)
            return self._tickets.whole(name)

    def counts(self) -> tuple[int, int]:
        """Return how many tickets are being submitted and how many wait."""
        with self.changed:
            return self._tickets.running, self._tickets.waiting

    def wait(self, name: str, timeout_s: float, after: int | None = None) -> Ticket:
        """Wait until a ticket is final or the time is over, and return it as it stands. Raises NotFound.

        With `after` a step behind that number ends the waiting too.
        """
        with self.changed:
            limit_s = min(timeout_s, threading.TIMEOUT_MAX)
            self.changed.wait_for(
                lambda: self._is_closed or self._is_over(name) or (after is not None and self._told_of(name) > after),
                limit_s,
            )
        return self.find(name)

    def _told_of(self, name: str) -> int:
        steps = self._steps.get(name)
        return steps[-1][0] if steps else 0

    def steps(self, name: str, after: int) -> tuple[tuple[Step, ...], int]:
        """Return what happened to a ticket's submission behind a number, and the number of the last step."""
        with self.changed:
            known = self._steps.get(name, ())
            return tuple(step for number, step in known if number > after), self._told_of(name)

    def tell(self, name: str, step: Step) -> None:
        """Let everybody know of a step of a submission. How far the same thing has come is kept once."""
        with self.changed:
            steps = self._steps.setdefault(name, [])
            number = self._told_of(name) + 1
            if steps and step.follows(steps[-1][1]):
                steps.pop()
            steps.append((number, step))
            while len(self._steps) > FOLLOWED:
                del self._steps[next(iter(self._steps))]
            self.changed.notify_all()
        payload: dict[str, Json] = {
            "ticket": name,
            "id": name.removeprefix("q-"),
            **cast("dict[str, Json]", codec.dump(step)),
        }
        self._publish("submission", self.key, payload)

    def _is_over(self, name: str) -> bool:
        ticket = self._tickets.get(name)
        return ticket is None or ticket.state.is_final

    def warnings(self) -> tuple[str, ...]:
        """Return what a user of this queue should know: damaged files until they are removed, the rest once."""
        with self.changed:
            self._damaged = [damage for damage in self._damaged if os.path.lexists(damage.path)]
            notes, self._notes = self._notes, []
            return (*map(str, self._damaged), *notes)

    def note(self, words: str | None) -> None:
        """Keep a warning for the next command."""
        if words is None:
            return
        with self.changed:
            if words not in self._notes:
                self._notes = [*self._notes, words][-NOTES:]

    # What changes a ticket

    def store(self, ticket: Ticket) -> Ticket:
        """Put a new ticket at the end of the line, durably. Raises AjError; then there is no such ticket."""
        with self.changed:
            self._tickets.remember_project(self.path)
            stored = self._tickets.add(ticket)
            self._told(stored)
            return stored

    def take_next(self) -> Ticket | None:
        """Take the queued ticket that waited longest into work, durably, and return it with its request.

        None when there is none or the daemon is about to leave. Raises AjError when the disk refuses.
        """
        with self.changed:
            ticket = None if self.is_draining else self._tickets.oldest_waiting(Mode.QUEUED)
            return self._take(ticket) if ticket else None

    def take(self, name: str) -> Ticket | None:
        """Take this very ticket into work; None when it no longer waits. Raises AjError."""
        with self.changed:
            ticket = self._tickets.get(name)
            if ticket is None or ticket.state is not TicketState.QUEUED:
                return None
            return self._take(ticket)

    def _take(self, ticket: Ticket) -> Ticket:
        self._mind_mode(ticket.ticket)
        now = rfc3339(self._clock.now())
        running = self._tickets.change(ticket.ticket, state=TicketState.RUNNING, started_at=now)
        self._told(running)
        return running

    def finish(self, name: str, ending: Ending) -> Ticket:
        """Write down how a submission ended. A disk that refuses delays this to the next reconcile."""
        changes = self._changes(ending)
        with self.changed:
            try:
                ticket = self._tickets.change(name, **changes)
            except AjError as error:
                ticket = self._tickets.hold(name, **changes)
                self.note(f"{name}: how it ended could not be written down: {error.message}")
            self._tickets.prune()
            self._told(ticket)
            return bare(ticket)

    def _changes(self, ending: Ending) -> queue.Changes:
        return queue.Changes(
            state=ending.state,
            outcome=ending.outcome,
            result=ending.result,
            detail=ending.detail,
            error=ending.error,
            finished_at=rfc3339(self._clock.now()),
        )

    def settle(self, name: str, ending: Ending) -> Ticket:
        """Write down what an unknown outcome turned out to be. A ticket that is known by now stays as it is.

        Raises NotFound, AjError when the disk refuses.
        """
        with self.changed:
            ticket = self.find(name)
            if ticket.outcome is not Outcome.UNKNOWN:
                return ticket
            settled = self._tickets.change(name, **self._changes(ending))
            self._tickets.prune()
            self._told(settled)
            return bare(settled)

    def cancel(self, name: str) -> Ticket:
        """Cancel a ticket that waits; it will never run. A canceled one stays so.

        Raises NotFound, Refused when it is in work or over, AjError when the disk refuses.
        """
        with self.changed:
            ticket = self.find(name)
            if ticket.state is TicketState.CANCELED:
                return ticket
            if ticket.state is not TicketState.QUEUED:
                raise _too_late(ticket)
            self._mind_mode(name)
            now = rfc3339(self._clock.now())
            canceled = self._tickets.change(name, state=TicketState.CANCELED, outcome=Outcome.CANCELED, finished_at=now)
            self._tickets.prune()
            self._told(canceled)
            return bare(canceled)

    def mark_retried(self, name: str, new: str) -> None:
        """Write into a ticket which one repeats it. What the disk refuses is mended at the next start."""
        with self.changed:
            try:
                self._tickets.change(name, retried_as=new)
            except AjError:
                self._tickets.hold(name, retried_as=new)

    def _mind_mode(self, name: str) -> None:
        if self._tickets.is_wide(name):
            path = self._layout.ticket(self.key, name)
            self.note(f"{path}: others could read it; it is private now")

    def _told(self, ticket: Ticket) -> None:
        """Let everybody know of a change: those who wait here, and those who listen to events."""
        self.touched_at = self._clock.monotonic()
        self.changed.notify_all()
        payload: dict[str, Json] = {
            "ticket": ticket.ticket,
            "id": ticket.id,
            "name": ticket.name,
            "state": ticket.state.value,
            "outcome": ticket.outcome.value if ticket.outcome else None,
        }
        self._publish("queue", self.key, payload)

    # The end of the day

    def drain(self) -> None:
        """Start no further queued ticket."""
        with self.changed:
            self.is_draining = True
            self.changed.notify_all()

    def wait_quiet(self, timeout_s: float | None) -> bool:
        """Wait until nothing is being submitted; False when the time is over first."""
        with self.changed:
            return self.changed.wait_for(self._is_quiet, timeout_s)

    def _is_quiet(self) -> bool:
        # a direct submission that was accepted still runs while the daemon is about to leave
        return not self._tickets.running and self._tickets.oldest_waiting(Mode.DIRECT) is None

    def close(self) -> None:
        """Let go of the project, unless a submission still runs: then the end of the process does."""
        with self.changed:
            self._is_closed = True
            self.is_draining = True
            self.changed.notify_all()
            if self._ownership is not None and not self._tickets.running:
                self._ownership.release()


def _too_late(ticket: Ticket) -> Refused:
    if ticket.state is TicketState.RUNNING:
        return Refused(
            f"{ticket.ticket} is being submitted just now",
            code="running",
            hint=f"`aj job cancel {ticket.id}` once it is submitted",
        )
    hint = f"`aj job cancel {ticket.id}`" if ticket.state is TicketState.COMPLETED else None
    return Refused(f"{ticket.ticket} is {ticket.state} already", code="final", hint=hint)
