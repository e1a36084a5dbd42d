"""The queue on disk: one file a ticket, holding its state, replaced whole at every change.

The daemon that owns a project is the only writer. A ticket is on disk before its number is told to
anyone, so a promised submission survives a crash. Order is by sequence, never by time. Anybody may
look (`scan`), also while the daemon hangs: that takes no lock and writes nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.record import Record, RecordState
from aj.model.ticket import MOVES, Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.store import atomic, journal, lock
from aj.store.layout import Layout
from aj.wire import codec

KEEP_FINAL = 200  # enough to look back in `aj queue list`; the journal has the rest
STOPPED = "the daemon stopped during this submission"
NOT_STARTED = "the daemon stopped before this submission began"
_NAME = re.compile(r"q-[0-9a-f]{8}\Z")
_OUTCOMES: Mapping[TicketState, frozenset[Outcome | None]] = {
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


class _Damaged(Exception):
    """A ticket's file that cannot be read: because of what is in it, or because the disk refuses."""

    def __init__(self, why: str, *, is_content: bool = True) -> None:
        super().__init__(why)
        self.is_content = is_content


@dataclass(frozen=True)
class Damage:
    """A ticket's file that cannot be read, where it stands now, and why."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"damaged ticket {self.path}: {self.why}"


@dataclass(frozen=True)
class Scan:
    """What a look at a queue's folder finds: tickets, oldest first, without their requests."""

    tickets: tuple[Ticket, ...]
    warnings: tuple[str, ...] = ()


def name_of(aj_id: str) -> str:
    """Return the ticket of an AJ ID."""
    return f"q-{aj_id}"


def is_name(word: str) -> bool:
    """Tell whether a word has the form of a ticket."""
    return bool(_NAME.match(word))


def no_such(ticket: str) -> NotFound:
    """Say that there is no such ticket."""
    return NotFound(f"no such ticket: `{ticket}`", hint="`aj queue list --all` shows them")


def keys(layout: Layout) -> list[str]:
    """Return the projects that have a queue."""
    try:
        return sorted(entry.name for entry in os.scandir(layout.queue) if entry.is_dir())
    except FileNotFoundError:
        return []


def key_of(layout: Layout, ticket: str, prefer: str) -> str | None:
    """Return the project that holds a ticket, the preferred one first, or None."""
    if not is_name(ticket):
        return None
    others = (key for key in keys(layout) if key != prefer)
    return next((key for key in (prefer, *others) if layout.ticket(key, ticket).exists()), None)


def project_path(layout: Layout, key: str) -> str | None:
    """Return the project directory of a queue, None when there is none or it cannot be read."""
    try:
        value = json.loads(layout.project(key).read_bytes())
    except (OSError, ValueError):
        return None
    path = value.get("path") if isinstance(value, dict) else None
    return path if isinstance(path, str) else None


def scan(layout: Layout, key: str) -> Scan:
    """Look at a queue without being its owner: no lock is taken and nothing is written.

    What was in work when its owner died is shown as the next owner will find it.
    """
    tickets, damaged = _read_folder(layout, key)
    warnings = [*_set_aside_earlier(layout.tickets(key)), *(Damage(path, str(why)) for path, why in damaged)]
    if lock.living_holder(layout.ownership(key)) is None:
        tickets = as_left_behind(layout, key, tickets)
    return Scan(tuple(replace(ticket, request=None) for ticket in tickets), tuple(map(str, warnings)))


def stamp(layout: Layout, key: str) -> int:
    """Return a number that changes with every change of a queue's folder; 0 when there is none."""
    try:
        return layout.tickets(key).stat().st_mtime_ns
    except OSError:
        return 0


def count_queued(layout: Layout, key: str) -> int:
    """Count the tickets that wait in a queue that nobody here owns, without reading them as tickets."""
    return sum(_is_queued(path) for path in _ticket_files(layout.tickets(key)))


def _is_queued(path: Path) -> bool:
    try:
        return b'"state":"queued"' in path.read_bytes()
    except OSError:
        return False


def as_left_behind(layout: Layout, key: str, tickets: Sequence[Ticket]) -> list[Ticket]:
    """Return tickets as they stand once their owner is dead: what was in work has ended.

    The journal knows more than the ticket when the daemon died between its last line and the ticket.
    """
    in_work = [ticket.id for ticket in tickets if ticket.state is TicketState.RUNNING]
    told = journal.last(layout, key, in_work) if in_work else {}
    return [_left_behind(ticket, told.get(ticket.id)) for ticket in tickets]


def _left_behind(ticket: Ticket, record: Record | None) -> Ticket:
    if ticket.state is TicketState.QUEUED and ticket.mode is Mode.DIRECT:
        return replace(ticket, state=TicketState.FAILED, outcome=Outcome.NEVER_ARRIVED, detail=NOT_STARTED)
    if ticket.state is not TicketState.RUNNING:
        return ticket
    if record and record.state is RecordState.SUBMITTED and record.handle:
        result = Submitted(record.azure_name, record.handle, record.portal_url, record.note)
        return replace(ticket, state=TicketState.COMPLETED, outcome=Outcome.SUBMITTED, result=result)
    if record and record.state is RecordState.FAILED:
        return replace(ticket, state=TicketState.FAILED, outcome=Outcome.FAILED, error=record.error)
    hint = f"`aj queue reconcile {ticket.ticket}` finds out what became of it"
    error = Fault("OutcomeUnknown", "outcome-unknown", STOPPED, hint)
    return replace(ticket, state=TicketState.FAILED, outcome=Outcome.UNKNOWN, detail=STOPPED, error=error)


def chosen(tickets: Sequence[Ticket], states: Sequence[str], limit: int) -> tuple[list[Ticket], int]:
    """Return what a list shows, oldest first, and how many more there are.

    Without states: all queued submissions, and direct ones while they are open or unknown. What waits
    comes before what is over when the limit (0 for none) is too small for both. Raises UserError on a
    word that is neither a state nor an outcome.
    """
    known = [*(state.value for state in TicketState), *(outcome.value for outcome in Outcome)]
    for word in states:
        if word not in known:
            raise UserError(f"`{word}` is no state of a ticket", hint="one of " + ", ".join(dict.fromkeys(known)))
    found = [ticket for ticket in tickets if _is_listed(ticket, states)]
    if not limit or len(found) <= limit:
        return found, 0
    open_ones = [ticket for ticket in found if not ticket.state.is_final][:limit]
    over = [ticket for ticket in found if ticket.state.is_final]
    kept = {ticket.ticket for ticket in (*open_ones, *over[len(over) - (limit - len(open_ones)) :])}
    return [ticket for ticket in found if ticket.ticket in kept], len(found) - len(kept)


def _is_listed(ticket: Ticket, states: Sequence[str]) -> bool:
    if states:
        return ticket.state in states or ticket.outcome in states
    return ticket.mode is Mode.QUEUED or not ticket.state.is_final or ticket.outcome is Outcome.UNKNOWN


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

    def restore(self, *, now: str) -> list[Damage]:
        """Read the folder once, settle what a dead owner left in work, and return the damaged files.

        Those are set aside. Raises AjError when the folder cannot be written.
        """
        damage = _set_aside_earlier(self._layout.tickets(self._key))
        found, damaged = _read_folder(self._layout, self._key)
        damage += [Damage(atomic.set_aside(path) if why.is_content else path, str(why)) for path, why in damaged]
        atomic.sweep(self._layout.tickets(self._key))
        for before, after in zip(found, as_left_behind(self._layout, self._key, found)):
            if after is not before:
                after = _without_last_use(replace(after, finished_at=now))
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
        with contextlib.suppress(OSError, _Damaged):
            return replace(ticket, request=_read_file(self._layout.ticket(self._key, name)).request)
        return ticket

    def remember_project(self, path: str | None) -> None:
        """Write down which project directory this queue belongs to. Raises AjError."""
        file = self._layout.project(self._key)
        if not file.exists() or project_path(self._layout, self._key) != path:
            atomic.make_folder(file.parent)
            atomic.write_json(file, {"path": path})

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
    if known or after.state not in MOVES[before.state] or after.outcome not in _OUTCOMES[after.state]:
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


def _read_folder(layout: Layout, key: str) -> tuple[list[Ticket], list[tuple[Path, _Damaged]]]:
    """Read every ticket of a queue: those that can be read, by sequence, and those that cannot, with why."""
    tickets, damaged = [], []
    for path in _ticket_files(layout.tickets(key)):
        try:
            tickets.append(_read_file(path))
        except FileNotFoundError:
            continue  # pruned between the listing and this look
        except OSError as error:
            damaged.append((path, _Damaged(error.strerror or str(error), is_content=False)))
        except _Damaged as error:
            damaged.append((path, error))
    return sorted(tickets, key=lambda ticket: (ticket.sequence, ticket.ticket)), damaged


def _ticket_files(folder: Path) -> list[Path]:
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []
    return [folder / name for name in names if name.endswith(".json") and is_name(name.removesuffix(".json"))]


def _read_file(path: Path) -> Ticket:
    raw = path.read_bytes()
    try:
        ticket = codec.load(Ticket, json.loads(raw), lenient=True)
    except RecursionError:
        raise _Damaged("nested too deeply") from None
    except (ValueError, UserError) as error:
        raise _Damaged(str(error)) from None
    if path.name != f"{ticket.ticket}.json":
        raise _Damaged(f"it holds the ticket {ticket.ticket!r}")
    return ticket


def _set_aside_earlier(folder: Path) -> list[Damage]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if ".damaged-" in entry.name)
    except FileNotFoundError:
        return []
    return [Damage(folder / name, "set aside earlier; look at it, then remove it") for name in names]
