"""A file into a container, once: what is there already stays, and an upload that broke off goes on where it was.

A blob's name holds the SHA-256 of its bytes, so a blob of that name and size is that file. A small file goes
in one request, a large one in blocks, several at once, each named by its place and its content: blocks that a
broken upload left behind are found by their names. Whoever loses the race to another uploader has won as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aj.base import units
from aj.base.clock import Clock
from aj.base.errors import AjError, Refused, Unavailable, UserError
from aj.base.noun import dataclass
from aj.net import retry

if TYPE_CHECKING:
    from aj.azure.blobs import Container

MIB = 1024 * 1024
LISTED = 10  # of the largest files, in an error
Progress = Callable[[int, int, int], None]  # bytes that are there, of how many, and how many of them were before
T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """How a file is cut, in bytes. `limit` is the most that one request of the service may bring.

    Above `single`, blocks of `block` go `at_once` at a time: never more than that is held in memory.
    """

    single: int = 32 * MIB
    block: int = 16 * MIB
    at_once: int = 4
    limit: int = 5000 * MIB


SIZES = Sizes()


@dataclass(frozen=True)
class Source:
    """What is to be uploaded. `read` returns bytes from an offset, `origin` tells a person where they are from."""

    size: int
    sha256: str
    content_type: str
    origin: str
    read: Callable[[int, int], bytes] = field(repr=False)


def of_bytes(data: bytes, content_type: str, origin: str) -> Source:
    """Return a source of bytes at hand."""
    return Source(
        len(data), hashlib.sha256(data).hexdigest(), content_type, origin, lambda at, count: data[at : at + count]
    )


@contextlib.contextmanager
def of_file(path: Path, sha256: str, content_type: str) -> Iterator[Source]:
    """Open a file as a source for the length of a block. Raises AjError when it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise AjError(f"{path} cannot be read: {error.strerror}") from error
    try:
        size = os.fstat(handle).st_size
        yield Source(size, sha256, content_type, str(path), lambda at, count: _range(handle, at, count))
    finally:
        os.close(handle)


def _range(handle: int, at: int, count: int) -> bytes:
    """Read a part of an open file; shorter only where the file ends."""
    whole = os.pread(handle, count, at)  # nearly always: and then nothing is copied
    if len(whole) == count or not whole:
        return whole
    pieces = bytearray(whole)
    while len(pieces) < count and (piece := os.pread(handle, count - len(pieces), at + len(pieces))):
        pieces += piece
    return bytes(pieces)


@dataclass(frozen=True)
class Uploaded:
    """A blob that is there now. `sent_bytes` left for it, `skipped_bytes` were there before."""

    name: str
    size_bytes: int
    sent_bytes: int
    skipped_bytes: int

    @property
    def is_reused(self) -> bool:
        return self.skipped_bytes == self.size_bytes

    def __str__(self) -> str:
        if self.is_reused:
            return "reused (0 B sent)"
        resumed = f", {units.size(self.skipped_bytes)} were there" if self.skipped_bytes else ""
        return f"uploaded {units.size(self.sent_bytes)}{resumed}"


def check_size(size_bytes: int, largest: Sequence[tuple[str, int]] = (), *, limit: int = SIZES.limit) -> None:
    """Raise UserError when an archive is too large for the service; `largest` are paths and bytes of its files."""
    if size_bytes <= limit:
        return
    listed = ", ".join(f"{path} {units.size(size)}" for path, size in largest[:LISTED])
    named = f"; largest: {listed}" if listed else ""
    raise UserError(
        f"archive is {units.size(size_bytes)}, limit {limit // MIB} MiB{named}",
        code="code-too-large",
        hint="leave large files out by `code.ignore`, and mount them as storage",
        details={"limit": limit, "bytes": size_bytes},
    )


def upload(
    container: Container,
    name: str,
    source: Source,
    *,
    clock: Clock,
    progress: Progress | None = None,
    sizes: Sizes = SIZES,
) -> Uploaded:
    """Bring a source into a container under a name that holds its SHA-256, or find it there.

    `progress` is called from several threads, one at a time; what it raises ends the upload. Raises UserError
    when the source is too large, Refused when a blob of another size has the name, AjError when the source is
    not what its SHA-256 says, and as the container does.
    """
    check_size(source.size, limit=sizes.limit)
    upload = _Upload(container, name, source, clock, _Tally(source.size, progress), sizes)
    if not upload.is_there():
        _check_bytes(source)
        upload.carry_out()
    tally = upload.tally
    return Uploaded(name, source.size, tally.sent, tally.skipped)


def _check_bytes(source: Source) -> None:
    """Refuse what would stand under a wrong name for ever."""
    total, at = hashlib.sha256(), 0
    while piece := source.read(at, MIB):
        total.update(piece)
        at += len(piece)
    if (at, total.hexdigest()) != (source.size, source.sha256):
        raise AjError(
            f"{source.origin} is damaged: its SHA-256 is not the one it was packed with",
            code="damaged-archive",
            hint=f"`rm {source.origin}`, then submit again",
        )


class _Tally:
    """Bytes that are there by now. Safe between threads."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._lock = threading.Lock()
        self.sent = 0
        self.skipped = 0

    def moved(self, count: int) -> None:
        """Count bytes that left; below zero, bytes that have to leave again."""
        with self._lock:
            self.sent += count
            self._tell()

    def skip(self, count: int) -> None:
        """Count bytes that were there."""
        with self._lock:
            self.skipped += count
            self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self.sent + self.skipped, self._total, self.skipped)


@dataclass(frozen=True)
class _Upload:
    container: Container
    name: str
    source: Source
    clock: Clock
    tally: _Tally
    sizes: Sizes
    stopped: threading.Event = field(default_factory=threading.Event)

    def is_there(self) -> bool:
        """Tell whether the blob is there whole. Raises Refused when another one has its name."""
        size = self._insist(lambda: self.container.size(self.name))
        if size is None:
            return False
        if size != self.source.size:
            raise Refused(
                f"blob {self.name} has {size} bytes where {self.source.size} were expected",
                code="other-blob",
                hint="ask who wrote it, or change a file to get a new name",
            )
        if not self.tally.sent:
            self.tally.skip(size - self.tally.skipped)
        return True

    def carry_out(self) -> None:
        """Upload; once more from the start when what was staged went away meanwhile."""
        try:
            self._send()
        except Refused as error:
            if self._was_overtaken(error):
                return
            self.tally.moved(-self.tally.sent)
            self.tally.skip(-self.tally.skipped)
            self._send_again()

    def _send_again(self) -> None:
        try:
            self._send()
        except Refused as error:
            if not self._was_overtaken(error):
                raise

    def _was_overtaken(self, error: Refused) -> bool:
        """Tell whether the blob is there after all: somebody was faster, or our own lost request was."""
        if error.code != "conflict":
            raise error
        return self.is_there()

    def _send(self) -> None:
        source = self.source
        if source.size <= self.sizes.single:
            data = source.read(0, source.size)
            self._insist(lambda: self.container.put(self.name, data, source.content_type, self.tally.moved))
            return
        names = self._stage_all(self._insist(lambda: self.container.staged(self.name)))
        self._insist(lambda: self.container.commit(self.name, names, source.content_type))

    def _stage_all(self, staged: Mapping[str, int]) -> list[str]:
        """Stage every block that does not wait already; return their names in order."""
        count = -(-self.source.size // self.sizes.block)
        with ThreadPoolExecutor(self.sizes.at_once, thread_name_prefix="blocks") as pool:
            parts = [pool.submit(self._stage, index, staged) for index in range(count)]
            try:
                wait(parts, return_when=FIRST_EXCEPTION)
                return [part.result() for part in _failed_first(parts)]
            finally:
                self._stop(parts)

    def _stop(self, parts: Sequence[Future[str]]) -> None:
        if not all(part.done() and not part.exception() for part in parts):
            self.stopped.set()
            for part in parts:
                part.cancel()

    def _stage(self, index: int, staged: Mapping[str, int]) -> str:
        data = self.source.read(index * self.sizes.block, self.sizes.block)
        block = f"{index:06d}{hashlib.sha256(data).hexdigest()[:20]}"
        if staged.get(block) == len(data):
            self.tally.skip(len(data))
        else:
            self._insist(lambda: self.container.stage(self.name, block, data, self.tally.moved))
        return block

    def _insist(self, act: Callable[[], T]) -> T:
        """Do what may be repeated, four times while another try may help."""
        for pause_s in retry.PAUSES_S:
            try:
                return act()
            except Unavailable as error:
                if not retry.is_passing(error) or self.clock.wait(self.stopped, retry.pause(error, pause_s)):
                    raise
        return act()


def _failed_first(parts: Sequence[Future[str]]) -> list[Future[str]]:
    """The parts in order, or, when one failed, that one before all."""
    failed = [part for part in parts if part.done() and part.exception()]
    return failed[:1] or list(parts)
