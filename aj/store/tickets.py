"""Tickets on disk, for whoever looks: one file a ticket, holding its state, in a folder for each project.

Anybody may look, also while the daemon hangs: that takes no lock and writes nothing. Order is by
sequence, never by time. Who owns a project changes its tickets through `aj.store.queue`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aj.base.errors import NotFound, UserError
from aj.base.noun import dataclass
from aj.model.record import Record, RecordState
from aj.model.ticket import Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.store import journal, lock
from aj.store.layout import Layout
from aj.wire import codec

STOPPED = "the daemon stopped during this submission"
NOT_STARTED = "the daemon stopped before this submission began"
_NAME = re.compile(r"q-[0-9a-f]{8}\Z")


class Unreadable(Exception):
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
        with os.scandir(layout.queue) as listed:
            return sorted(entry.name for entry in listed if entry.is_dir())
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
    except (OSError, ValueError, RecursionError):
        return None
    path = value.get("path") if isinstance(value, dict) else None
    return path if isinstance(path, str) else None


def scan(layout: Layout, key: str) -> Scan:
    """Look at a queue without being its owner: no lock is taken and nothing is written.

    What was in work when its owner died is shown as the next owner will find it.
    """
    tickets, damaged = read_folder(layout, key)
    warnings = [*set_aside_earlier(layout.tickets(key)), *(Damage(path, str(why)) for path, why in damaged)]
    if lock.living_holder(layout.ownership(key)) is None:
        tickets = as_left_behind(layout, key, tickets)
    return Scan(tuple(tickets), tuple(map(str, warnings)))


def look(layout: Layout, key: str, ticket: str) -> Ticket | None:
    """Look at one ticket as `scan` looks at all; None when there is none that can be read."""
    try:
        found = read_file(layout.ticket(key, ticket), with_request=False)
    except (OSError, Unreadable):
        return None
    owned = lock.living_holder(layout.ownership(key)) is not None
    return found if owned else as_left_behind(layout, key, [found])[0]


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


def is_settled(layout: Layout, key: str, ticket: str) -> bool:
    """Tell whether a submission is over and its outcome known; one that is remembered no more is."""
    try:
        found = read_file(layout.ticket(key, ticket), with_request=False)
    except FileNotFoundError:
        return True
    except (OSError, Unreadable):
        return False
    return found.state.is_final and found.outcome is not Outcome.UNKNOWN


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


def read_folder(layout: Layout, key: str) -> tuple[list[Ticket], list[tuple[Path, Unreadable]]]:
    """Read a queue without its requests: tickets that can be read, by sequence, and those that cannot, with why."""
    tickets, damaged = [], []
    for path in _ticket_files(layout.tickets(key)):
        try:
            tickets.append(read_file(path, with_request=False))
        except FileNotFoundError:
            continue  # pruned between the listing and this look
        except OSError as error:
            damaged.append((path, Unreadable(error.strerror or str(error), is_content=False)))
        except Unreadable as error:
            damaged.append((path, error))
    return sorted(tickets, key=lambda ticket: (ticket.sequence, ticket.ticket)), damaged


def _ticket_files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as listed:
            names = [entry.name for entry in listed]
    except FileNotFoundError:
        return []
    return [folder / name for name in names if name.endswith(".json") and is_name(name.removesuffix(".json"))]


def read_file(path: Path, *, with_request: bool = True) -> Ticket:
    """Read one ticket, with its request or without. Raises Unreadable, OSError."""
    raw = path.read_bytes()
    try:
        value = json.loads(raw)
        if not with_request and isinstance(value, dict):
            value.pop("request", None)  # most of the work, and nobody who looks at a queue needs it
        ticket = codec.load(Ticket, value, lenient=True)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except (ValueError, UserError) as error:
        raise Unreadable(str(error)) from None
    if path.name != f"{ticket.ticket}.json":
        raise Unreadable(f"it holds the ticket {ticket.ticket!r}")
    return ticket


def set_aside_earlier(folder: Path) -> list[Damage]:
    """Return the damaged files that stand beside the tickets of a queue."""
    try:
        with os.scandir(folder) as listed:
            names = sorted(entry.name for entry in listed if ".damaged-" in entry.name)
    except FileNotFoundError:
        return []
    return [Damage(folder / name, "set aside earlier; look at it, then remove it") for name in names]
