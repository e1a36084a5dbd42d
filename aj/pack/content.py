"""Reading the selected files, so that each is taken whole and as it was at one moment.

A file that is the same before and after it was read counts as read. One that is not is read once more; if it
changes again, that is an error which names it. Large files are passed on piece by piece, so there the whole
reading starts again, once. Nothing but a regular file is ever read: what became a pipe since the walk is told.
"""

from __future__ import annotations

import hashlib
import os
import stat
from array import array
from collections.abc import Iterable, Iterator
from errno import ELOOP

from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.pack import offence, tar
from aj.pack.offence import Ground, Offence
from aj.pack.selection import FOLDER, KIND_SHIFT, REGULAR, WIDTH, Selection, column, facts_of

PIECE = 1 << 20  # memory for one file at a time; larger ones come in pieces of this size
# Without waiting for a writer, should the file have become a pipe; and never through a link.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
Facts = tuple[int, ...]


class Changed(Exception):
    """A file is not what it was when its reading began."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self.path = path


@dataclass
class Ledger:
    """What a reading found: the facts of the entries as they were read, and the SHA-256 of each file in order."""

    facts: array[int]
    sums: bytearray

    @staticmethod
    def of(selection: Selection) -> Ledger:
        return Ledger(selection.facts[:], bytearray())


def members(selection: Selection, ledger: Ledger) -> Iterator[tuple[bytes, Iterable[bytes]]]:
    """Give each selected entry as the pieces of its tar member, noting in the ledger what was read.

    Raises UserError for a file that cannot be read or keeps changing, Changed for a large one.
    """
    modes = selection.facts[::WIDTH]
    for index, path in enumerate(selection.paths):
        kind = modes[index] >> KIND_SHIFT
        if kind == REGULAR:
            yield path, _file(selection, index, ledger)
        elif kind == FOLDER:
            yield path, (tar.header(path, tar.FOLDER, mode=tar.MODES[tar.FOLDER]),)
        else:
            target = selection.targets[path]
            yield path, (tar.header(path, tar.LINK, mode=tar.MODES[tar.LINK], target=target),)


def trouble(selection: Selection, path: bytes, reason: str, ground: Ground = Ground.CHANGED) -> UserError:
    """Make the error about one file that cannot be taken."""
    return offence.error([Offence(path, reason, ground)], selection.ignore_file)


def file_header(path: bytes, facts: Facts) -> bytes:
    """Write the tar header of a file with these facts."""
    mode = tar.EXECUTABLE if facts[0] & stat.S_IXUSR else tar.MODES[tar.FILE]
    return tar.header(path, tar.FILE, size=facts[1], mode=mode)


def _file(selection: Selection, index: int, ledger: Ledger) -> Iterable[bytes]:
    path = selection.paths[index]
    place = selection.place(path)
    known = tuple(selection.facts[index * WIDTH : index * WIDTH + WIDTH])
    if known[1] <= PIECE:
        data = _as_known(place, known)
        if data is not None:
            ledger.sums += hashlib.sha256(data).digest()
            return (file_header(path, known), data, tar.filling(len(data)))
        found = _again(selection, path, place)
        if found is not None:
            facts, data = found
            ledger.facts[index * WIDTH : index * WIDTH + WIDTH] = column(facts)
            ledger.sums += hashlib.sha256(data).digest()
            return (file_header(path, facts), data, tar.filling(len(data)))
    return _large(selection, index, ledger)


def _as_known(place: bytes, known: Facts) -> bytes | None:
    """Read a small file; None unless it is still what the walk saw."""
    try:
        handle = os.open(place, _FLAGS)
    except OSError:
        return None  # the second look tells what is wrong
    try:
        data = os.read(handle, known[1] + 1)
        return data if len(data) == known[1] and facts_of(os.fstat(handle)) == known else None
    except OSError:
        return None
    finally:
        os.close(handle)


def _again(selection: Selection, path: bytes, place: bytes) -> tuple[Facts, bytes] | None:
    """Read a small file that changed since the walk; None when it has grown large. Raises UserError."""
    try:
        with _Open(selection, path, place) as file:
            if file.facts[1] > PIECE:
                return None
            return file.facts, b"".join(file.pieces())
    except Changed as error:
        raise trouble(selection, path, "changes while it is read") from error


def _large(selection: Selection, index: int, ledger: Ledger) -> Iterator[bytes]:
    path = selection.paths[index]
    total = hashlib.sha256()
    with _Open(selection, path, selection.place(path)) as file:
        yield file_header(path, file.facts)
        for piece in file.pieces():
            total.update(piece)
            yield piece
        yield tar.filling(file.facts[1])
        ledger.facts[index * WIDTH : index * WIDTH + WIDTH] = column(file.facts)
        ledger.sums += total.digest()


def sum_of(selection: Selection, index: int) -> tuple[Facts, bytes]:
    """Read one file for its facts and its SHA-256. Raises Changed, or UserError when it cannot be read."""
    path = selection.paths[index]
    total = hashlib.sha256()
    with _Open(selection, path, selection.place(path)) as file:
        for piece in file.pieces():
            total.update(piece)
        return file.facts, total.digest()


class _Open:
    """A file open for one reading, with the facts at its beginning."""

    def __init__(self, selection: Selection, path: bytes, place: bytes) -> None:
        self._path = path
        self._selection = selection
        try:
            self._handle = os.open(place, _FLAGS)
        except OSError as error:
            raise self._refuse(error) from error
        status = os.fstat(self._handle)
        self.facts: Facts = facts_of(status)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._handle)
            raise Changed(path)

    def __enter__(self) -> _Open:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def pieces(self) -> Iterator[bytes]:
        """Give the content. Raises Changed at its end unless it is as long and as old as at the beginning."""
        left = self.facts[1]
        try:
            while piece := os.read(self._handle, min(PIECE, left + 1)):
                left -= len(piece)
                yield piece
            if left or facts_of(os.fstat(self._handle)) != self.facts:
                raise Changed(self._path)
        except OSError as error:
            raise self._refuse(error) from error

    def _refuse(self, error: OSError) -> Exception:
        if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == ELOOP:
            return Changed(self._path)
        return trouble(self._selection, self._path, f"cannot be read: {error.strerror}", Ground.PERMISSION)
