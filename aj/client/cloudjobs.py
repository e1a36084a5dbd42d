"""Jobs of workspaces: listed, counted, shown, waited for, ended, deleted, and what they printed.

A workspace is one word: `-` for that of the settings, `*` for all, a name, or coordinates with colons between;
a namespace of a cluster is `volcano://context/namespace`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import OutcomeUnknown, TimedOut
from aj.client.line import AnswerLost, Line, Query
from aj.client.queue import named
from aj.model.cloudjob import CloudJob
from aj.wire import paths
from aj.wire.azure import CloudJobAnswer, CloudJobList, CloudStats, FilePage, JobQuery, LogFiles, segment
from aj.wire.messages import Done
from aj.wire.paths import Route

BETWEEN = "\n"  # words of one list in a query
LOOK_S = 3.0  # between two looks at a job or at a file that grows
SLOWEST_S = 15.0  # when nothing has happened for a while
SLOWER = 1.5  # how much longer each pause is than the one before it
T = TypeVar("T")


class CloudJobs:
    """What a caller can do with jobs of workspaces."""

    def __init__(self, line: Line, clock: Clock = SYSTEM) -> None:
        self._line = line
        self._clock = clock

    def list(self, workspace: str, query: JobQuery) -> CloudJobList:
        """List jobs, newest first. Raises UserError, NotFound without such a workspace, AuthError, RemoteError."""
        return self._line.read(CloudJobList, paths.CLOUD_JOBS, segment(workspace), query=_words(query))

    def stats(self, workspace: str, query: JobQuery) -> CloudStats:
        """Count jobs. Raises as `list`."""
        return self._line.read(CloudStats, paths.CLOUD_STATS, segment(workspace), query=_words(query))

    def show(self, workspace: str, name: str, *, why: bool = False) -> CloudJobAnswer:
        """Return one job; of one that failed, with the reason; with `why`, what keeps it from running.

        Raises NotFound, UserError where nobody tells why.
        """
        query: Query = {"why": 1 if why else None}
        return self._line.read(CloudJobAnswer, paths.CLOUD_JOB, segment(workspace), named(name, "id"), query=query)

    def wait(self, workspace: str, name: str, *, timeout_s: float | None = None) -> Iterator[CloudJob]:
        """Yield a job as it stands and whenever that changes, until it is final. Raises NotFound, TimedOut."""
        begun, last, pause_s = self._clock.monotonic(), None, LOOK_S
        while True:
            job = self.show(workspace, name).job
            if job.status != last:
                last, pause_s = job.status, LOOK_S
                yield job
            if job.is_final:
                return
            left_s = None if timeout_s is None else begun + timeout_s - self._clock.monotonic()
            if left_s is not None and left_s <= 0:
                raise overdue(job, timeout_s or 0)
            self._clock.sleep(pause_s if left_s is None else min(pause_s, left_s))
            pause_s = min(SLOWEST_S, pause_s * SLOWER)

    def cancel(self, workspace: str, name: str) -> CloudJobAnswer:
        """Ask a job to end. One that has ended is left alone. Raises NotFound, Refused, OutcomeUnknown."""
        return self._change(CloudJobAnswer, paths.CLOUD_CANCEL, workspace, name)

    def delete(self, workspace: str, name: str) -> Done:
        """Delete a job that has ended. Raises Refused, RemoteError, OutcomeUnknown."""
        return self._change(Done, paths.CLOUD_DELETE, workspace, name)

    def files(self, workspace: str, name: str, *, sizes: bool = False) -> LogFiles:
        """Return the log files of a job, what a user wants first. Raises NotFound."""
        return self._line.read(
            LogFiles, paths.CLOUD_FILES, segment(workspace), named(name, "id"), query={"sizes": 1 if sizes else None}
        )

    def page(
        self, workspace: str, name: str, file: str, *, cursor: str | None = None, tail: int | None = None
    ) -> FilePage:
        """Return the next bytes of a log file: from its beginning or its last lines, then after a cursor."""
        query: Query = {"file": file, "cursor": cursor, "tail": tail if cursor is None else None}
        return self._line.read(FilePage, paths.CLOUD_LOG, segment(workspace), named(name, "id"), query=query)

    def _change(self, kind: type[T], route: Route, workspace: str, name: str) -> T:
        try:
            return self._line.change(kind, route, segment(workspace), named(name, "id"))
        except AnswerLost as lost:
            raise OutcomeUnknown(
                f"the answer about {name} was lost: {lost}", hint=f"`aj status {name}`", details={"id": name}
            ) from lost


def overdue(job: CloudJob, timeout_s: float) -> TimedOut:
    """Return the error of a wait whose time is over."""
    return TimedOut(
        f"{job.name} is {job.words} after {timeout_s:g} s; nothing was stopped",
        details={"id": job.name, "state": job.state.value if job.state else None},
    )


def _words(query: JobQuery) -> Query:
    return {
        "state": BETWEEN.join(query.states) or None,
        "experiment": query.experiment,
        "kind": query.kind,
        "tag": BETWEEN.join(query.tags) or None,
        "since_s": query.since_s,
        "archived": 1 if query.archived else None,
        "limit": query.limit,
    }
