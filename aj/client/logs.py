"""Logs of jobs on this machine, read from disk: no daemon is asked, so they can be read while it hangs.

Who follows one asks now and then whether the job is looked after: without a daemon nobody would note its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator

from aj.base import proc
from aj.base.clock import SYSTEM
from aj.base.errors import DaemonError, NotFound
from aj.client.line import Line
from aj.client.queue import named
from aj.model.log import Chunk, Source
from aj.store import joblogs, jobs
from aj.wire import paths
from aj.wire.messages import JobAnswer

CARE_S = 3.0  # between two questions whether the job is looked after


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
        """Yield what is written, as it is written, until the job has ended or `stop` is set.

        Goes on across a restart of the daemon, and starts one where none is. Raises as `read`, DaemonError.
        """
        layout = self._line.place.layout
        jobs.with_logs(layout, named(job_id, "id"))
        return joblogs.follow(
            layout.job(job_id),
            self.ended(job_id),
            attempt=attempt,
            rank=rank,
            sources=sources,
            tail=tail,
            since=since,
            stop=stop,
        )

    def ended(self, job_id: str) -> Callable[[], bool]:
        """Return what tells whether a job has ended, and now and then sees to it that a daemon looks after it.

        What is returned raises DaemonError when there is none and none can be started.
        """
        folder, line = self._line.place.layout.job(job_id), Line(self._line.settings, self._line.project)
        due = SYSTEM.monotonic() + CARE_S

        def has_ended() -> bool:
            nonlocal due
            if jobs.has_ended(folder):
                return True
            if SYSTEM.monotonic() < due:
                return False
            due = SYSTEM.monotonic() + CARE_S
            try:
                return line.read(JobAnswer, paths.JOB, job_id).workload.state.is_final
            except NotFound:
                return True  # it was deleted
            except DaemonError:
                daemon = line.place.read()
                if daemon is None or not proc.is_alive(daemon.who):
                    raise
                return False  # it hangs: what the job writes can be read all the same
            finally:
                line.forget()

        return has_ended
