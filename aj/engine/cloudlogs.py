"""Log files of runs in workspaces: which there are, and their bytes page by page.

The signed addresses by which files are read stay in the memory of this process. They are dropped before
they expire, and fetched anew once when one is refused.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from aj.azure import jobs, logs, workspaces
from aj.azure.arm import Session, Workspace
from aj.azure.fan import gather
from aj.azure.history import History
from aj.azure.logs import Cursor, Page
from aj.base.errors import AuthError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.engine import cloudjobs
from aj.wire.azure import FilePage, LogFile, LogFiles

KEPT = 100  # runs whose addresses are kept; each is a few kilobytes
LINE = b"\n"
BACK = 64  # pages that a search for the last lines goes back at most: 64 MiB
T = TypeVar("T")


@dataclass
class _Run:
    """The files of one run: paths and, as far as they are known, signed addresses."""

    session: Session
    history: History
    name: str
    experiment: str
    urls: dict[str, str] = field(default_factory=dict, repr=False)
    paths: tuple[str, ...] = ()

    def look(self) -> tuple[str, ...]:
        """Ask which files there are, in the order of a reader."""
        try:
            self.urls = dict(self.history.details(self.name).logs)
        except NotFound:  # the job is there and its run not yet
            self.urls = {}
        self.paths = tuple(logs.ordered(self.urls or self._artifacts()))
        return self.paths

    def _artifacts(self) -> list[str]:
        found: list[str] = []
        for prefix in logs.PREFIXES:
            try:
                found += self.history.artifacts(self.experiment, self.name, prefix)
            except NotFound:
                continue
        return found

    def url(self, path: str) -> str:
        """Return an address that is still good. Raises NotFound when there is no such file."""
        known = self.urls.get(path)
        if known is not None and _is_good(known, self.session.clock.now()):
            return known
        if path not in self.look():
            listed = ", ".join(self.paths[:3]) or "none"
            raise NotFound(f"{self.name} has no log file {path} (has: {listed})", hint="`--list` names them all")
        if path not in self.urls:
            self.urls[path] = self.history.content_url(self.experiment, self.name, path)
        return self.urls[path]

    def read(self, path: str, ask: Callable[[str], T]) -> T:
        """Read by a signed address, and once more by a new one when it is refused."""
        try:
            return ask(self.url(path))
        except (AuthError, Refused):
            self.urls.pop(path, None)
            return ask(self.url(path))


class CloudLogs:
    """The logs of runs. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[Workspace, str, str | None], _Run] = OrderedDict()

    def files(self, session: Session, workspace: Workspace, name: str, *, sizes: bool) -> LogFiles:
        """List the log files of a job, with their sizes if wanted. Raises NotFound when there is no such job."""
        job = jobs.get(session, workspace, name)
        run = self._run(session, workspace, name, job.experiment)
        paths = run.look()
        files = _sized(run, paths) if sizes else tuple(LogFile(path) for path in paths)
        return LogFiles(files, cloudjobs.told(job, workspace, session.clock.now()))

    def page(
        self, session: Session, workspace: Workspace, name: str, path: str, *, cursor: str | None, tail: int | None
    ) -> FilePage:
        """Read the next bytes of a file: after `cursor`, or its last lines, or from its beginning.

        Raises NotFound, UserError on a cursor that is none.
        """
        run = self._run(session, workspace, name, None)
        start = Cursor(path) if cursor is None else decoded(cursor)
        if start.path != path:
            raise UserError("query.cursor: it belongs to another file", code="bad-field")
        if cursor is None and tail is not None:
            start = run.read(path, lambda url: last_lines(lambda at, size: _read(session, url, at, size), path, tail))
        page = run.read(path, lambda url: _read(session, url, start, logs.PAGE))
        return FilePage(page.data, encoded(page.cursor), page.was_reset)

    def _run(self, session: Session, workspace: Workspace, name: str, experiment: str | None) -> _Run:
        key = (workspace, name, session.tenant)
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
                return self._runs[key]
        if experiment is None:
            experiment = jobs.get(session, workspace, name).experiment
        history = History.of(session, workspaces.get(session, workspace))
        run = _Run(session, history, name, experiment or "Default")
        with self._lock:
            self._runs[key] = run
            if len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        return run


def _read(session: Session, url: str, cursor: Cursor, size: int) -> Page:
    return logs.read(session.plain, url, cursor, size=size)


def _sized(run: _Run, paths: tuple[str, ...]) -> tuple[LogFile, ...]:
    """Ask for the size of each file. One that gives no answer has none."""

    def size(path: str) -> LogFile:
        return LogFile(path, run.read(path, lambda url: logs.tail(run.session.plain, url, path, size=1)).cursor.size)

    known = {file.path: file for file in gather(paths, size).values}
    return tuple(known.get(path, LogFile(path)) for path in paths)


def last_lines(read: Callable[[Cursor, int], Page], path: str, count: int, *, page: int = logs.PAGE) -> Cursor:
    """Return where the last lines of a file begin; `read` reads from a cursor at most so many bytes.

    A last line that does not end counts as one. At most 64 pages from the end are searched.
    """
    total = read(Cursor(path), 1).cursor.size
    end, missing = total, count
    for _ in range(BACK):
        if not end or not missing:
            break
        start = max(0, end - page)
        data = read(Cursor(path, start), end - start).data
        at = len(data)
        if end == total and data.endswith(LINE):
            at -= 1  # the end of the last line, not of one before it
        while missing and (found := data.rfind(LINE, 0, at)) >= 0:
            missing -= 1
            at = found
        if not missing:
            return Cursor(path, start + at + 1)
        end = start
    return Cursor(path, total if not count else end)


def _is_good(url: str, now: float) -> bool:
    until = logs.expires_at(url)
    return until is None or now < until


def encoded(cursor: Cursor) -> str:
    """Write a cursor as one word."""
    whole = json.dumps([cursor.path, cursor.offset, cursor.etag, cursor.size], separators=(",", ":"))
    return base64.urlsafe_b64encode(whole.encode()).decode().rstrip("=")


def decoded(word: str) -> Cursor:
    """Read what `encoded` wrote. Raises UserError on anything else."""
    try:
        path, offset, etag, size = json.loads(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)))
        is_one = isinstance(path, str) and isinstance(offset, int) and isinstance(size, int)
        if is_one and offset >= 0 and (etag is None or isinstance(etag, str)):
            return Cursor(path, offset, etag, size)
    except (ValueError, TypeError):
        pass  # said below
    raise UserError("query.cursor: it is none", code="bad-field")
