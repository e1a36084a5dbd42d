"""Watches: jobs of which somebody wants to hear when they move."""

from __future__ import annotations

from collections.abc import Sequence

from aj.base.errors import OutcomeUnknown
from aj.client.line import AnswerLost, Line
from aj.client.queue import named
from aj.wire import paths
from aj.wire.watch import WatchDone, WatchList, WatchWish


class Watches:
    """What a caller can do with watches of his project."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def list(self, *, all_projects: bool = False) -> WatchList:
        """List watches, the oldest first."""
        return self._line.read(WatchList, paths.WATCHES, query={"all": 1 if all_projects else None})

    def add(
        self, job_id: str, name: str, *, handle: str | None = None, ways: Sequence[str] = (), ahead: bool = False
    ) -> WatchDone:
        """Watch a job; with `ahead` it is only being submitted. Raises UserError on a bad way, OutcomeUnknown."""
        wish = WatchWish(named(job_id, "id"), name, handle, tuple(ways), ahead)
        try:
            return self._line.change(WatchDone, paths.WATCH_ADD, body=wish)
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer was lost: {lost}", hint="`aj watch list`") from lost

    def remove(self, job_id: str) -> WatchDone:
        """Watch a job no longer; one that is not watched is `noop`. Raises OutcomeUnknown."""
        try:
            return self._line.change(WatchDone, paths.WATCH_REMOVE, named(job_id, "id"))
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer was lost: {lost}", hint="`aj watch list`") from lost
