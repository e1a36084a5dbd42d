"""Logs of jobs on this machine, read from disk: no daemon is asked, so they can be read while it hangs."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator

from aj.client.line import Line
from aj.client.queue import named
from aj.model.log import Chunk, Source
from aj.store import joblogs, jobs


class Logs:
    """What a caller can read of what jobs wrote."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def read(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        rank: int | None = None,
        sources: Collection[Source] | None = None,
        tail: int | None = None,
        since: float | None = None,
    ) -> Iterator[Chunk]:
        """Yield what a start of the job wrote until now, by default the newest. Raises NotFound, Refused.

        `tail` counts lines of all streams together; `since` is seconds since the epoch.
        """
        layout = self._line.place.layout
        jobs.with_logs(layout, named(job_id, "id"))
        return joblogs.read(layout.job(job_id), attempt=attempt, rank=rank, sources=sources, tail=tail, since=since)

    def follow(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        rank: int | None = None,
        sources: Collection[Source] | None = None,
        tail: int | None = None,
        since: float | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[Chunk]:
        """Yield what is written, as it is written, until the job has ended or `stop` is set. Raises as `read`."""
        layout = self._line.place.layout
        jobs.with_logs(layout, named(job_id, "id"))
        return joblogs.follow(
            layout.job(job_id),
            lambda: jobs.has_ended(layout.job(job_id)),
            attempt=attempt,
            rank=rank,
            sources=sources,
            tail=tail,
            since=since,
            stop=stop,
        )
