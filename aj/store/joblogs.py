"""Logs of jobs: what the processes of each start wrote, byte for byte, and when.

    logs/N/rank0.out  rank0.err     a process of start N
           runner.out  runner.err   setup lines, and words of the supervisor
           times                    `MILLISECONDS RANK out|err SIZE`: how large a stream was at a moment
           rank0.out@4096           a log that was cut when the job had ended: its first 4096 bytes are gone

The processes write these files themselves, so output survives whatever happens to anybody else. The
times are sampled a few times a second: they order lines of several streams, and find a moment again.
Reading merges whole lines of all streams and changes no byte.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from aj.base import text, units
from aj.base.clock import SYSTEM, Clock
from aj.base.noun import dataclass
from aj.model.log import Chunk, Source, Stream
from aj.store import atomic

RUNNER = -1
NAMES = ("out", "err")
BLOCK = 1 << 16
POLL_S = 0.05  # a new line is shown after 50 ms at most; a look costs some stat calls
HOLD_S = 0.25  # how long a line without its end waits, lest two processes be mixed within a line
FLOOR = 1 << 20  # this much of the end of every log is always kept


@dataclass(frozen=True)
class LogFile:
    """One stream on disk. `base` bytes were cut from its front; offsets count from the true start."""

    stream: Stream
    path: Path
    base: int = 0

    def size(self) -> int:
        """Return how much was ever written. Raises FileNotFoundError when it was cut or deleted meanwhile."""
        return self.base + self.path.stat().st_size

    def written_at(self) -> float:
        """Return when the last byte was written. Raises FileNotFoundError."""
        return self.path.stat().st_mtime


@dataclass(frozen=True)
class Choice:
    """Which streams a reader wants; None means all."""

    rank: int | None = None
    sources: Collection[Source] | None = None

    def takes(self, stream: Stream) -> bool:
        """Tell whether a stream belongs to what is wanted."""
        return (self.rank is None or stream.rank == self.rank) and (
            self.sources is None or stream.source in self.sources
        )


def attempt_folder(folder: Path, attempt: int) -> Path:
    """Return the folder of the logs of one start."""
    return folder / "logs" / str(attempt)


def times_file(folder: Path, attempt: int) -> Path:
    """Return where the sizes over time of one start stand."""
    return attempt_folder(folder, attempt) / "times"


def log_file(folder: Path, attempt: int, rank: int, name: str) -> Path:
    """Return where one process writes its `out` or `err`; rank -1 is the runner."""
    return attempt_folder(folder, attempt) / (f"runner.{name}" if rank == RUNNER else f"rank{rank}.{name}")


def time_line(at: float, rank: int, name: str, size: int) -> bytes:
    """Return the line of the times file which says how large a stream was at a moment."""
    return f"{int(at * 1000)} {rank} {name} {size}\n".encode()


def attempts(folder: Path) -> list[int]:
    """Return the numbers of the starts that have logs, oldest first."""
    try:
        names = os.listdir(folder / "logs")
    except FileNotFoundError:
        return []
    return sorted(int(name) for name in names if name.isdecimal())


EVERYTHING = Choice()


def files(folder: Path, attempt: int, choice: Choice = EVERYTHING) -> list[LogFile]:
    """Return the streams of one start: the runner's, then by rank, `out` before `err`."""
    try:
        names = os.listdir(attempt_folder(folder, attempt))
    except FileNotFoundError:
        return []
    found: dict[Stream, LogFile] = {}
    for name in names:
        file = _parse(attempt_folder(folder, attempt) / name, attempt)
        if file is not None and choice.takes(file.stream):
            known = found.get(file.stream)
            if known is None or known.base < file.base:  # both stand there when a cut was interrupted
                found[file.stream] = file
    return sorted(found.values(), key=_order)


def _order(file: LogFile) -> tuple[int, int]:
    return file.stream.rank, NAMES.index(file.stream.name)


def _parse(path: Path, attempt: int) -> LogFile | None:
    name, _, base = path.name.partition("@")
    who, _, kind = name.partition(".")
    if kind not in NAMES or (base and not base.isdecimal()):
        return None
    if who == "runner":
        return LogFile(Stream(attempt, RUNNER, kind, Source.RUNNER), path, int(base or 0))
    rank = who.removeprefix("rank")
    if rank == who or not rank.isdecimal():
        return None
    return LogFile(Stream(attempt, int(rank), kind), path, int(base or 0))


def streams(folder: Path) -> list[Stream]:
    """Return every stream of a job, oldest start first."""
    return [file.stream for attempt in attempts(folder) for file in files(folder, attempt)]


def read(
    folder: Path,
    *,
    attempt: int | None = None,
    rank: int | None = None,
    sources: Collection[Source] | None = None,
    tail: int | None = None,
    since: float | None = None,
) -> Iterator[Chunk]:
    """Yield what a start of the job wrote until now, by default the newest, in the order of time.

    `tail` keeps the last lines of all streams together; `since` is seconds since the epoch.
    """
    number = attempt if attempt is not None else next(reversed(attempts(folder)), None)
    if number is not None:
        yield from _now(folder, number, Choice(rank, sources), tail, since)[1]


def _now(
    folder: Path, attempt: int, choice: Choice, tail: int | None, since: float | None
) -> tuple[_Span, Iterator[Chunk]]:
    """Look at a start until the look holds: a log may be cut just now, once in its life."""
    while True:
        try:
            span = _Span.now(folder, attempt, choice)
            chunks = span.chunks(tail=tail, since=since)
            first = list(itertools.islice(chunks, 1))
        except FileNotFoundError:
            continue
        return span, itertools.chain(first, chunks)


@dataclass(frozen=True)
class _Piece:
    """A part of a stream up to `end` that was seen at one moment."""

    at: float
    file: LogFile
    end: int


@dataclass(frozen=True)
class _Span:
    """The streams of one start as far as they were written at one moment."""

    ends: Mapping[LogFile, int]
    pieces: Sequence[_Piece]

    @staticmethod
    def now(folder: Path, attempt: int, choice: Choice) -> _Span:
        ends = {file: file.size() for file in files(folder, attempt, choice)}
        times = _times(times_file(folder, attempt))
        pieces = [piece for file, end in ends.items() for piece in _pieces(file, end, times)]
        pieces.sort(key=lambda piece: (piece.at, _order(piece.file)))
        return _Span(ends, pieces)

    def chunks(self, *, tail: int | None, since: float | None) -> Iterator[Chunk]:
        """Raises FileNotFoundError, before the first chunk, when a log was cut or deleted since the look."""
        with contextlib.ExitStack() as opened:
            handles = {file: opened.enter_context(file.path.open("rb")) for file in self.ends}
            starts = {file: self._start(file, handle, tail, since) for file, handle in handles.items()}
            found = self._in_order(handles, starts)
            yield from found if tail is None or len(handles) < 2 else _last_lines(list(found), tail)

    def _start(self, file: LogFile, handle: BinaryIO, tail: int | None, since: float | None) -> int:
        start = file.base
        if since is not None:
            older = max((one.end for one in self.pieces if one.file is file and one.at < since), default=file.base)
            start = older if older == self.ends[file] else _line_start(handle, file.base, older)
        if tail is not None:
            start = max(start, _tail_start(handle, file.base, self.ends[file], tail))
        return start

    def _in_order(self, handles: Mapping[LogFile, BinaryIO], starts: Mapping[LogFile, int]) -> Iterator[Chunk]:
        at = dict(starts)
        for piece in self.pieces:
            handle = handles.get(piece.file)
            if handle is None or piece.end <= at[piece.file]:
                continue
            end = piece.end
            if len(handles) > 1 and end != self.ends[piece.file]:
                end = max(at[piece.file], _line_start(handle, piece.file.base, end))
            for offset in range(at[piece.file], end, BLOCK):
                data = _bytes(handle, piece.file, offset, min(end, offset + BLOCK))
                if data:
                    yield Chunk(piece.file.stream, offset, data, piece.at)
            at[piece.file] = end


def _times(path: Path) -> Mapping[tuple[int, str], list[tuple[float, int]]]:
    found: dict[tuple[int, str], list[tuple[float, int]]] = {}
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return found
    for line in raw.split(b"\n"):
        words = line.split()
        try:
            at, rank, name, size = int(words[0]), int(words[1]), words[2].decode(), int(words[3])
        except (ValueError, IndexError):
            continue  # torn by a crash; the others still say when
        found.setdefault((rank, name), []).append((at / 1000, size))
    return found


def _pieces(file: LogFile, end: int, times: Mapping[tuple[int, str], list[tuple[float, int]]]) -> Iterator[_Piece]:
    last = file.base
    for at, size in times.get((file.stream.rank, file.stream.name), ()):
        if last < size <= end:
            yield _Piece(at, file, size)
            last = size
    if last < end:
        yield _Piece(file.written_at(), file, end)


def _bytes(handle: BinaryIO, file: LogFile, start: int, end: int) -> bytes:
    handle.seek(start - file.base)
    return handle.read(end - start)


def _line_start(handle: BinaryIO, base: int, offset: int) -> int:
    """Return the offset just after the last newline before `offset`."""
    end = offset - base
    while end > 0:
        start = max(0, end - BLOCK)
        handle.seek(start)
        at = handle.read(end - start).rfind(b"\n")
        if at >= 0:
            return base + start + at + 1
        end = start
    return base


def _tail_start(handle: BinaryIO, base: int, end: int, lines: int) -> int:
    """Return where the last `lines` lines of a stream begin."""
    if lines <= 0:
        return end
    wanted = lines
    at = end - base
    if at:
        handle.seek(at - 1)
        wanted += handle.read(1) == b"\n"  # the newline of the last line begins no further one
    while at > 0:
        start = max(0, at - BLOCK)
        handle.seek(start)
        block = handle.read(at - start)
        count = block.count(b"\n")
        if count >= wanted:
            place = len(block)
            for _ in range(wanted):
                place = block.rfind(b"\n", 0, place)
            return base + start + place + 1
        wanted -= count
        at = start
    return base


def last_words(folder: Path, attempt: int) -> str | None:
    """Return the last line that is not blank which one start wrote, of `err` before `out`; None without one."""
    for file in sorted(files(folder, attempt), key=lambda file: -NAMES.index(file.stream.name)):
        try:
            with file.path.open("rb") as handle:
                size = handle.seek(0, os.SEEK_END)
                handle.seek(max(0, size - BLOCK))
                lines = [line.strip() for line in text.decoded(handle.read()).splitlines()]
        except OSError:
            continue  # it was removed between the listing and the look
        said = next((line for line in reversed(lines) if line), None)
        if said is not None:
            return text.visible(said)
    return None


def _last_lines(chunks: Sequence[Chunk], lines: int) -> Iterator[Chunk]:
    """Yield the last lines of merged chunks; a line may lie in several chunks of its stream."""
    number = itertools.count()
    current: dict[Stream, int | None] = {}
    parts: list[tuple[int, Chunk]] = []
    for chunk in chunks:
        offset = chunk.offset
        for data in _lines(chunk.data):
            line = current.get(chunk.stream)
            line = next(number) if line is None else line
            parts.append((line, Chunk(chunk.stream, offset, data, chunk.at)))
            current[chunk.stream] = None if data.endswith(b"\n") else line
            offset += len(data)
    first = next(number) - lines
    yield from (chunk for line, chunk in parts if line >= first)


def _lines(data: bytes) -> list[bytes]:
    """Split at newlines alone; a carriage return (a progress bar) ends no line."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


class _Follower:
    """Where a reader stands in each stream, and lines that still lack their end."""

    def __init__(self, folder: Path, attempt: int | None, choice: Choice, clock: Clock) -> None:
        self._folder = folder
        self._only = attempt
        self._from = attempt or 0
        self._choice = choice
        self._clock = clock
        self._at: dict[Stream, int] = {}
        self._held: dict[Stream, float] = {}

    def until_now(self, tail: int | None, since: float | None) -> Iterator[Chunk]:
        """Yield what is there already, of the newest start."""
        number = self._only if self._only is not None else next(reversed(attempts(self._folder)), None)
        if number is None:
            return
        self._from = number
        span, chunks = _now(self._folder, number, self._choice, tail, since)
        self._at = {file.stream: end for file, end in span.ends.items()}
        yield from chunks

    def what_is_new(self, *, everything: bool) -> Iterator[Chunk]:
        """Yield what came since the last look; `everything` also gives lines without an end."""
        numbers = [number for number in attempts(self._folder) if number >= self._from]
        for number in numbers:
            if self._only is not None and number != self._only:
                continue
            older = number != numbers[-1]
            yield from self._new_in(number, everything=everything or older)

    def _new_in(self, number: int, *, everything: bool) -> Iterator[Chunk]:
        while True:
            found = files(self._folder, number, self._choice)
            try:
                for file in found:
                    yield from self._new_of(file, alone=len(found) == 1, everything=everything)
            except FileNotFoundError:
                continue  # a log was cut just now: it has another name
            return

    def _new_of(self, file: LogFile, *, alone: bool, everything: bool) -> Iterator[Chunk]:
        now = self._clock.now()
        end = file.size()
        start = max(file.base, self._at.get(file.stream, file.base))
        if end <= start:
            return
        with file.path.open("rb") as handle:
            if not (alone or everything or now - self._held.setdefault(file.stream, now) >= HOLD_S):
                end = max(start, _line_start(handle, file.base, end))
            while start < end and (data := _bytes(handle, file, start, min(end, start + BLOCK))):
                yield Chunk(file.stream, start, data, now)
                start += len(data)
                self._held.pop(file.stream, None)
        self._at[file.stream] = start


def follow(
    folder: Path,
    has_ended: Callable[[], bool],
    *,
    attempt: int | None = None,
    rank: int | None = None,
    sources: Collection[Source] | None = None,
    tail: int | None = None,
    since: float | None = None,
    clock: Clock = SYSTEM,
    stop: threading.Event | None = None,
) -> Iterator[Chunk]:
    """Yield what is written, as it is written, until the job has ended; also over several starts.

    Waits for a job that has not started. `has_ended` is asked before each look, so nothing written
    before the end is missed; `stop` ends it with what is there by then.
    """
    halt = stop or threading.Event()
    follower = _Follower(folder, attempt, Choice(rank, sources), clock)
    yield from follower.until_now(tail, since)
    while True:
        is_last = halt.is_set() or has_ended()
        quiet = True
        for chunk in follower.what_is_new(everything=is_last):
            quiet = False
            yield chunk
        if is_last:
            return
        if quiet:
            clock.wait(halt, POLL_S)


def trim(folder: Path, keep_bytes: int) -> list[str]:
    """Cut every log to its last bytes, at least 1 MiB, from the start of a line; say what was dropped.

    Only for a job whose processes are gone. Raises AjError when the disk refuses.
    """
    notes = []
    for attempt in attempts(folder):
        for file in files(folder, attempt):
            dropped = _cut(file, max(FLOOR, keep_bytes))
            if dropped:
                name = file.path.name.partition("@")[0]
                notes.append(f"logs/{attempt}/{name}: the first {units.size(dropped)} were dropped")
    return notes


def _cut(file: LogFile, keep_bytes: int) -> int:
    whole = file.path.with_name(file.path.name.partition("@")[0])
    if file.base:
        whole.unlink(missing_ok=True)  # an earlier cut was interrupted just before this
        return 0
    end = file.size()
    if end <= keep_bytes + BLOCK:  # less than a block more is not worth a copy
        return 0
    with file.path.open("rb") as source:
        start = end - keep_bytes
        line = _line_start(source, 0, start)
        start = line if start - line < BLOCK else start
        source.seek(start)
        with atomic.writing(whole.with_name(f"{whole.name}@{start}")) as target:
            while data := source.read(BLOCK):
                target.write(data)
    whole.unlink()
    return start
