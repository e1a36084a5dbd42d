"""Where a watched job stands, whoever runs it: this machine, a queue that has not sent it yet, a service elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.model import handle
from aj.model.handle import Handle
from aj.model.state import JobState
from aj.model.ticket import Outcome, Ticket, TicketState
from aj.model.watch import Sighting, Watch
from aj.store import journal, tickets
from aj.store.layout import Layout

if TYPE_CHECKING:
    from aj.model.workload import Workload


class Seen(Protocol):
    """A job at a place: our word for its state, the place's own, and why it failed."""

    @property
    def state(self) -> JobState | None: ...
    @property
    def words(self) -> str: ...
    @property
    def error(self) -> str | None: ...


Elsewhere = Callable[[Project | None, Handle], Seen | None]


@dataclass(frozen=True)
class Sight:
    """Looks at jobs. `here` knows those of this machine; `elsewhere` gives None for a place that it cannot ask."""

    layout: Layout
    here: Callable[[str], Workload | None]
    elsewhere: Elsewhere

    def __call__(self, watch: Watch) -> Sighting | None:
        """Return where a job stands, None when nobody knows of it. Raises what asking its place raises."""
        if watch.handle is not None:
            return self._there(watch, watch.handle)
        job = self.here(watch.id)
        if job is None:
            return self._submitted(watch)
        return Sighting(job.state.value, job.state.is_final, job.message)

    def _submitted(self, watch: Watch) -> Sighting | None:
        ticket = self._ticket(watch)
        if ticket is None:
            record = journal.last(self.layout, watch.project, [watch.id]).get(watch.id)
            return self._there(watch, record.handle) if record and record.handle else None
        if ticket.state in (TicketState.QUEUED, TicketState.RUNNING):
            return Sighting(TicketState.QUEUED.value)
        if ticket.outcome is Outcome.UNKNOWN:
            return Sighting("unknown", False, ticket.detail)  # `aj queue reconcile` may settle it
        if ticket.result is None or ticket.result.handle is None:
            return Sighting(ticket.state.value, True, ticket.error.message if ticket.error else ticket.detail)
        return self._there(watch, ticket.result.handle)

    def _ticket(self, watch: Watch) -> Ticket | None:
        name = tickets.name_of(watch.id)
        key = tickets.key_of(self.layout, name, watch.project)
        if key is None:
            return None
        return tickets.look(self.layout, key, name)

    def _there(self, watch: Watch, written: str) -> Sighting | None:
        try:
            place = handle.parse(written)
        except ValueError:
            return None
        try:
            job = self.elsewhere(Project(Path(watch.folder)) if watch.folder else None, place)
        except NotFound:
            return None if watch.state is None else Sighting("gone", True, "its place does not know it any more")
        if job is None:
            return Sighting("submitted", True, f"`{place.service}` does not tell how its jobs fare", written)
        if job.state is None:
            return Sighting(job.words, handle=written)
        return Sighting(job.state.value, job.state.is_final, job.error, written)
