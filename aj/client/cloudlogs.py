"""Log files of jobs of workspaces as one stream of bytes: to their end as it is, or on until the job has ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.client.cloudjobs import LOOK_S, SLOWER, SLOWEST_S, CloudJobs, overdue
from aj.wire.azure import FilePage, LogFiles

SETTLED = 2  # looks at an ended job that brought nothing: then nothing more will come


@dataclass(frozen=True)
class Piece:
    """Some bytes of a file. `was_reset` when the file was replaced, and begins anew with them."""

    file: str
    data: bytes
    was_reset: bool = False


@dataclass(frozen=True)
class Wanted:
    """Which files: one by its name or its rank, all, or the first."""

    file: str | None = None
    rank: int | None = None
    every: bool = False

    def of(self, found: LogFiles) -> tuple[str, ...]:
        """Choose files; none when there is none yet. Raises NotFound naming what there is."""
        paths = tuple(file.path for file in found.files)
        if self.file is not None:
            return self._one(paths, (path for path in paths if path == self.file or path.endswith(f"/{self.file}")))
        if self.rank is not None:
            return self._one(paths, (path for path in paths if rank_of(path) == self.rank))
        return paths if self.every else paths[:1]

    def _one(self, paths: Sequence[str], fitting: Iterator[str]) -> tuple[str, ...]:
        chosen = next(fitting, None)
        if chosen is not None or not paths:
            return (chosen,) if chosen else ()
        what = f"called {self.file}" if self.file is not None else f"of rank {self.rank}"
        raise NotFound(f"there is no log file {what}", code="no-such-file", hint="`--list` names them all")


def rank_of(path: str) -> int | None:
    """Return the number of the process that wrote a file; None when it is not one process's own."""
    found = re.match(r"user_logs/std_log(?:_process_(?P<rank>[0-9]+))?(?:\.|\Z)|rank_(?P<pod>[0-9]+)/", path)
    return int(found["rank"] or found["pod"] or 0) if found else None


class CloudLogs:
    """The logs of one job."""

    def __init__(self, jobs: CloudJobs, workspace: str, name: str, clock: Clock = SYSTEM) -> None:
        self._jobs = jobs
        self._workspace = workspace
        self._name = name
        self._clock = clock

    def files(self, *, sizes: bool = False) -> LogFiles:
        """Return the files there are. Raises NotFound without such a job."""
        return self._jobs.files(self._workspace, self._name, sizes=sizes)

    def read(self, file: str, *, tail: int | None = None) -> Iterator[Piece]:
        """Yield a file to the end that it has now. Raises NotFound."""
        reader = _Reader(self, file, tail)
        while (piece := reader.next()) is not None:
            yield piece

    def follow(self, wanted: Wanted, *, tail: int | None = None, timeout_s: float | None = None) -> Iterator[Piece]:
        """Yield what is written into the wanted files, as it is written, until the job has ended.

        Files that appear meanwhile come along. Raises NotFound, TimedOut.
        """
        until = None if timeout_s is None else self._clock.monotonic() + timeout_s
        readers: dict[str, _Reader] = {}
        pause_s, quiet = LOOK_S, 0
        while True:
            found = self.files()
            for file in wanted.of(found):
                readers.setdefault(file, _Reader(self, file, tail))
            is_quiet = True
            for reader in readers.values():
                while (piece := reader.next()) is not None:
                    is_quiet = False
                    yield piece
            quiet = quiet + 1 if is_quiet and found.job.is_final else 0
            if quiet >= SETTLED:
                return
            pause_s = min(SLOWEST_S, pause_s * SLOWER) if is_quiet else LOOK_S
            if until is not None and self._clock.monotonic() >= until:
                raise overdue(found.job, timeout_s or 0)
            self._clock.sleep(pause_s if until is None else max(0.0, min(pause_s, until - self._clock.monotonic())))

    def page(self, file: str, cursor: str | None, tail: int | None = None) -> FilePage:
        """Return the next bytes of a file."""
        return self._jobs.page(self._workspace, self._name, file, cursor=cursor, tail=tail)


class _Reader:
    """One file, read on from where it was."""

    def __init__(self, logs: CloudLogs, file: str, tail: int | None) -> None:
        self._logs = logs
        self._file = file
        self._tail = tail
        self._cursor: str | None = None

    def next(self) -> Piece | None:
        """Return what is new, or None when nothing is."""
        page = self._logs.page(self._file, self._cursor, self._tail)
        was_reset = page.was_reset
        if was_reset:
            page = self._logs.page(self._file, page.cursor)
        self._cursor = page.cursor
        return Piece(self._file, page.data, was_reset) if page.data or was_reset else None
