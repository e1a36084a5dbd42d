"""The route of the journal: what became of every submission."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from aj.base import paths as places
from aj.base.noun import dataclass
from aj.daemon.call import Answer, Call, Handler, reply
from aj.model.record import Record
from aj.store import journal
from aj.store.layout import Layout
from aj.wire import paths
from aj.wire.messages import Journal
from aj.wire.paths import Route

LIMIT = 20  # records when nobody says how many


@dataclass(frozen=True)
class History:
    """Reads the journals of the state directory; changes nothing in them."""

    layout: Layout

    def listing(self, call: Call) -> Answer:
        """List submissions of this project or of all, newest first; a limit of 0 means all of them."""
        damaged: list[str] = []
        key = call.project.key if call.project else places.NO_PROJECT
        keys = journal.keys(self.layout) if call.flag("all") else [key]
        found: list[Record] = []
        limit = call.whole("limit", LIMIT) or None
        for one in keys:
            newest = journal.newest(self.layout, one, lambda where: damaged.append(f"{where}: not a record"))
            found += itertools.islice(newest, None if limit is None else limit + 1)
        found.sort(key=lambda record: record.ts, reverse=True)
        return reply(Journal(tuple(found[:limit]), limit is not None and len(found) > limit, tuple(damaged)))

    def handlers(self) -> Mapping[Route, Handler]:
        """Return which of these answers which route."""
        return {paths.JOURNAL: self.listing}
