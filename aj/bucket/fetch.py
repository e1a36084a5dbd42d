"""One object to one file: large ones in ranges, several at once; a download that broke off goes on where it was.

The file appears under its name when it is whole. Beside it lie, until then, its bytes (`.HASH.aj-part`) and, of a
large one, the ranges that are there (`.HASH.aj-part.json`), good for as long as the object stays the same. The hash is
that of the whole name, so every file has a part of its own, whose name is short; one download at a time writes to it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aj.base.errors import AjError, Refused, UserError
from aj.base.noun import dataclass
from aj.bucket.storage import Storage
from aj.bucket.transfer import Pace, Progress
from aj.model.bucket import Stored
from aj.store import atomic

RANGE = 8 << 20  # bytes of one request
AT_ONCE = 4  # ranges of one object
PART = ".aj-part"
_OURS = re.compile(r"\.[0-9a-f]{32}\.aj-part(?:\.json|\.new)?\Z")
_HELD: set[str] = set()  # the parts that are written to just now
_GUARD = threading.Lock()
State = tuple[int, int, int]  # of a file: its size, when it was last changed in nanoseconds, and its inode


@dataclass(frozen=True)
class Look:
    """How the file shall look: its mode, and when it was last changed (None: when the object was written)."""

    mode: int = atomic.FILE_MODE
    mtime_ns: int | None = None


LOOK = Look()


def part_of(target: Path) -> Path:
    """Return where the bytes of a file lie while they come: beside it, under a name that no other file has."""
    return target.with_name(f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:32]}{PART}")


def fetch(storage: Storage, found: Stored, target: Path, pace: Pace, progress: Progress, look: Look = LOOK) -> State:
    """Bring an object into a file and return the state of the file that this call put there.

    Raises what the storage raises, Stopped, AjError when the disk refuses, UserError when no disk takes the name,
    and Refused: with code `conflict` when the object changes meanwhile, with `busy` while another one brings it.
    """
    part = part_of(target)
    try:
        target.parent.mkdir(mode=atomic.FOLDER_MODE, parents=True, exist_ok=True)
        with _held(part, target):
            return _bring(storage, found, target, part, pace, progress, look)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            words = f"{found.name}: a file cannot have so long a name here"
            raise UserError(words, code="no-folder", hint="give the object a shorter name") from error
        raise atomic.cannot_write(target, error) from error


def _bring(
    storage: Storage, found: Stored, target: Path, part: Path, pace: Pace, progress: Progress, look: Look
) -> State:
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, atomic.FILE_MODE)
    try:
        _fill(storage, found, handle, part, pace, progress)
        os.fchmod(handle, look.mode)
        stamp = found.stamp if look.mtime_ns is None else look.mtime_ns
        stamp = int(found.modified_at * 1e9) if stamp is None else stamp
        os.utime(handle, ns=(stamp, stamp))
        os.replace(part, target)
        _notes(part).unlink(missing_ok=True)
        return _put_there(handle, found, target)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _held(part: Path, target: Path) -> Iterator[None]:
    """Keep a part to one download; one daemon carries them all. Raises Refused while another one holds it."""
    name = f"{os.path.realpath(part.parent)}/{part.name}"
    with _GUARD:
        if name in _HELD:
            raise Refused(f"{target} is brought by another download just now", code="busy")
        _HELD.add(name)
    try:
        yield
    finally:
        with _GUARD:
            _HELD.discard(name)


def _is_at(handle: int, path: Path) -> bool:
    """Tell whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _put_there(handle: int, found: Stored, target: Path) -> State:
    """Return the state of the file that was brought. Raises Refused when something else stands in its place."""
    seen = os.fstat(handle)
    if seen.st_size != found.size_bytes or not _is_at(handle, target):
        raise Refused(f"{target} was written by another meanwhile", code="conflict")
    return state(seen)


def state(seen: os.stat_result) -> State:
    """Return what tells one state of a file from another."""
    return seen.st_size, seen.st_mtime_ns, seen.st_ino


def _fill(storage: Storage, found: Stored, handle: int, part: Path, pace: Pace, progress: Progress) -> None:
    if found.size_bytes <= RANGE:
        data = storage.read(found.name, 0, found.size_bytes, found.etag or None)
        _check(len(data), found.size_bytes, found.name)
        os.ftruncate(handle, 0)
        _write(handle, data, 0)
        progress.moved(len(data))
        return
    _Ranges(storage, found, handle, part, pace, progress).carry_out()


class _Ranges:
    """A large object on its way."""

    def __init__(
        self, storage: Storage, found: Stored, handle: int, part: Path, pace: Pace, progress: Progress
    ) -> None:
        self._storage = storage
        self._found = found
        self._handle = handle
        self._part = part
        self._pace = pace
        self._progress = progress
        self._lock = threading.Lock()
        self._done = _done_before(part, found)

    def carry_out(self) -> None:
        """Bring what is missing. Raises the first error of a range."""
        if not self._done:
            os.ftruncate(self._handle, 0)
        os.ftruncate(self._handle, self._found.size_bytes)
        every = range(-(-self._found.size_bytes // RANGE))
        for number in sorted(self._done):
            self._progress.moved(self._size(number))
        missing = [number for number in every if number not in self._done]
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ranges") as threads:
            try:
                list(threads.map(self._bring, missing))
            except BaseException:
                threads.shutdown(wait=True, cancel_futures=True)
                raise

    def _bring(self, number: int) -> None:
        size, found = self._size(number), self._found
        data = self._pace.insist(lambda: self._storage.read(found.name, number * RANGE, size, found.etag or None))
        _check(len(data), size, found.name)
        _write(self._handle, data, number * RANGE)
        self._progress.moved(size)
        with self._lock:
            self._done.add(number)
            self._note()

    def _size(self, number: int) -> int:
        return min(RANGE, self._found.size_bytes - number * RANGE)

    def _note(self) -> None:
        """Say which ranges are there; who lost this note to a crash brings them once more."""
        words = {"etag": self._found.etag, "size": self._found.size_bytes, "done": sorted(self._done)}
        beside = _notes(self._part).with_suffix(".new")
        beside.write_text(json.dumps(words))
        os.replace(beside, _notes(self._part))


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _done_before(part: Path, found: Stored) -> set[int]:
    """Return the ranges that an earlier try brought of this very state of the object."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        words = json.loads(_notes(part).read_text())
        whole = part.stat().st_size == found.size_bytes
        if whole and found.etag and words["etag"] == found.etag and words["size"] == found.size_bytes:
            return {int(number) for number in words["done"]}
    return set()


def _write(handle: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(handle, view, at)
        view, at = view[count:], at + count


def _check(count: int, due: int, name: str) -> None:
    if count != due:
        raise Refused(f"{name} was changed meanwhile: {count} bytes came where {due} were expected", code="conflict")


def is_ours(name: str) -> bool:
    """Tell whether a name is one that only a download on its way gives: no object may come or go under it."""
    return _OURS.match(name.rpartition("/")[2]) is not None


def sweep(folder: Path, due: Set[Path]) -> None:
    """Remove the parts in a folder that are none of `due`, with what is noted of them."""
    # a leftover does no harm: the next sweep finds it again
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_ours(entry.name) and folder / f"{entry.name.partition(PART)[0]}{PART}" not in due:
                os.unlink(entry.path)


def clear(folder: Path, keep: Sequence[str] = ()) -> None:
    """Remove everything in a folder but some names at its top. Raises AjError when something stays."""
    import shutil

    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name not in keep]
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                _open_up(Path(entry.path))
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise AjError(f"cannot remove {error.filename}: {error.strerror}", code="cannot-remove") from error


def _open_up(path: Path) -> None:
    """Give ourselves back the right to change every folder of a tree."""
    path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for name in names:
            inner = Path(folder, name)
            if not inner.is_symlink():
                inner.chmod(0o700)
