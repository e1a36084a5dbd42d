"""The queue of one project in the hands of its owner: tickets are added, changed and pruned here alone.

A ticket is on disk before its number is told to anyone, so a promised submission survives a crash. A
ticket's file is replaced whole at every change, and a move that is not allowed changes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypedDict, Unpack

from aj.base.errors import AjError, Refused
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.ticket import MOVES, Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.store import atomic, tickets
from aj.store.layout import Layout
from aj.store.tickets import Damage, Unreadable
from aj.wire import codec

KEEP_FINAL = 200  # enough to look back in `aj queue list`; the journal has the rest
OUTCOMES: Mapping[TicketState, frozenset[Outcome | None]] = {
    TicketState.QUEUED: frozenset({None}),
    TicketState.RUNNING: frozenset({None}),
    TicketState.COMPLETED: frozenset({Outcome.SUBMITTED}),
    TicketState.FAILED: frozenset({Outcome.FAILED, Outcome.UNKNOWN, Outcome.NEVER_ARRIVED}),
    TicketState.CANCELED: frozenset({Outcome.CANCELED}),
}


class Changes(TypedDict, total=False):
    """The fields of a ticket that may change after it was accepted."""

    state: TicketState
    outcome: Outcome | None
    started_at: str | None
    finished_at: str | None
    detail: str | None
    error: Fault | None
    result: Submitted | None
    retried_as: str | None
    request: JobSpec | None
    code: CodeRef | None


class Tickets:
    """The tickets of one project in the hands of their owner. The caller guards it against itself.

    An index in memory holds every ticket without its request, so that no change costs more for a long
    queue than for a short one.
    """

    def __init__(self, layout: Layout, key: str, *, keep_final: int = KEEP_FINAL) -> None:
        self._layout = layout
        self._key = key
        self._keep_final = keep_final
        self._index: dict[str, Ticket] = {}
        self._waiting: dict[str, None] = {}  # queued ones, oldest first
        self._running: set[str] = set()
        self._over: dict[str, None] = {}  # final and known, in the order of their end
        self._sequence = 0
        self._told_path: tuple[str | None] | None = None  # the project directory as it was last written down

    def restore(self, *, now: str) -> list[Damage]:
        """Read the folder once, settle what a dead owner left in work, and return the damaged files.

        Those are set aside. Raises AjError when the folder cannot be written.
        """
        damage = tickets.set_aside_earlier(self._layout.tickets(self._key))
        found, damaged = tickets.read_folder(self._layout, self._key)
        damage += [Damage(atomic.set_aside(path) if why.is_content else path, str(why)) for path, why in damaged]
        atomic.sweep(self._layout.tickets(self._key))
        for before, after in zip(found, tickets.as_left_behind(self._layout, self._key, found)):
            self._remember(before)
            if after is not before:
                request = self.whole(before.ticket).request
                after = _without_last_use(replace(after, finished_at=now, request=request))
                self._write(after)
                self._remember(after)
        self._link_retries()
        self._order_the_ends()
        return damage

    def _link_retries(self) -> None:
        """A retry is written before the ticket that it repeats is marked: mend a mark that a crash prevented."""
        for ticket in list(self._index.values()):
            origin = self._index.get(ticket.retried_from or "")
            if origin is not None and origin.retried_as is None:
                self.change(origin.ticket, retried_as=ticket.ticket)

    def _order_the_ends(self) -> None:
        ends = sorted(self._over, key=lambda name: (self._index[name].finished_at or "", self._index[name].sequence))
        self._over = dict.fromkeys(ends)

    def __iter__(self) -> Iterator[Ticket]:
        """Go through all tickets, oldest first, without their requests."""
        return iter(self._index.values())

    def __len__(self) -> int:
        return len(self._index)

    @property
    def waiting(self) -> int:
        """How many are queued."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many are being submitted just now."""
        return len(self._running)

    def get(self, name: str) -> Ticket | None:
        """Return a ticket without its request, or None."""
        return self._index.get(name)

    def oldest_waiting(self, mode: Mode) -> Ticket | None:
        """Return the ticket of this mode that has waited longest, or None."""
        waiting = (self._index[name] for name in self._waiting)
        return next((ticket for ticket in waiting if ticket.mode is mode), None)

    def whole(self, name: str) -> Ticket:
        """Return a ticket with its request as it stands on disk (None when it was erased or lost)."""
        ticket = self._index[name]
        with contextlib.suppress(OSError, Unreadable):
            return replace(ticket, request=tickets.read_file(self._layout.ticket(self._key, name)).request)
        return ticket

    def remember_project(self, path: str | None) -> None:
        """Write down which project directory this queue belongs to. Raises AjError."""
        file = self._layout.project(self._key)
        if self._told_path == (path,) and file.exists():
            return
        if not file.exists() or tickets.project_path(self._layout, self._key) != path:
            atomic.make_folder(file.parent)
            atomic.write_json(file, {"path": path})
        self._told_path = (path,)

    def add(self, ticket: Ticket) -> Ticket:
        """Store a new ticket durably at the end of the line and return it with its sequence.

        Raises AjError when the disk refuses; then there is no such ticket, and no file of it.
        """
        stored = replace(ticket, sequence=self._sequence + 1)
        try:
            self._write(stored)
        except AjError:
            with contextlib.suppress(AjError):
                atomic.remove(self._layout.ticket(self._key, ticket.ticket))
            raise
        self._remember(stored)
        return self._index[stored.ticket]

    def change(self, name: str, **changes: Unpack[Changes]) -> Ticket:
        """Change a ticket durably and return it with its request, which is erased after its last use.

        Raises Refused on a move that is not allowed, AjError when the disk refuses: nothing has changed then.
        """
        before = self.whole(name)
        after = replace(before, **changes)
        check(before, after)
        after = _without_last_use(after)
        self._write(after)
        self._remember(after)
        return after

    def hold(self, name: str, **changes: Unpack[Changes]) -> Ticket:
        """As `change`, in memory only: for an outcome that the disk refused to take.

        After a restart the ticket is found as the disk has it, in work, and so as unknown.
        """
        before = self._index[name]
        after = replace(before, **changes)
        check(before, after)
        self._remember(after)
        return self._index[name]

    def is_wide(self, name: str) -> bool:
        """Tell whether others may read a ticket's file; the next change narrows it."""
        return atomic.is_wide(self._layout.ticket(self._key, name))

    def prune(self) -> None:
        """Remove final tickets beyond the newest ones. An unknown outcome is never removed."""
        while len(self._over) > self._keep_final:
            oldest = next(iter(self._over))
            try:
                atomic.remove(self._layout.ticket(self._key, oldest))
            except AjError:
                return  # a disk that cannot remove keeps it: the next end tries again
            del self._over[oldest]
            del self._index[oldest]

    def _write(self, ticket: Ticket) -> None:
        path = self._layout.ticket(self._key, ticket.ticket)
        atomic.make_folder(path.parent)
        atomic.write_json(path, codec.dump(ticket))

    def _remember(self, ticket: Ticket) -> None:
        name = ticket.ticket
        self._index[name] = replace(ticket, request=None)
        self._sequence = max(self._sequence, ticket.sequence)
        self._waiting.pop(name, None)
        self._running.discard(name)
        self._over.pop(name, None)
        if ticket.state is TicketState.QUEUED:
            self._waiting[name] = None
        elif ticket.state is TicketState.RUNNING:
            self._running.add(name)
        elif ticket.outcome is not Outcome.UNKNOWN:
            self._over[name] = None


def check(before: Ticket, after: Ticket) -> None:
    """Refuse a move of a ticket that is not allowed. Raises Refused.

    A final ticket stays as it ended; only an unknown outcome becomes known, once.
    """
    moved = (before.state, before.outcome) != (after.state, after.outcome)
    if not moved:
        return
    known = before.state is TicketState.FAILED and before.outcome is not Outcome.UNKNOWN
    if known or after.state not in MOVES[before.state] or after.outcome not in OUTCOMES[after.state]:
        raise Refused(
            f"{before.ticket} is {_words(before)} and cannot become {_words(after)}",
            code="bad-move",
        )


def _words(ticket: Ticket) -> str:
    return ticket.state.value if ticket.outcome in (None, ticket.state.value) else f"{ticket.state}/{ticket.outcome}"


def _without_last_use(ticket: Ticket) -> Ticket:
    """Erase the request of a ticket that will neither run nor be retried."""
    if ticket.state in (TicketState.COMPLETED, TicketState.CANCELED):
        return replace(ticket, request=None)
    return ticket
