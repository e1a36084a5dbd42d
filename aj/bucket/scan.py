"""A folder of a job as it stands: which files are in it, and what keeps one of them from being taken along.

Nothing is followed out of the folder. What is no file, folder or link is told and left.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.bucket import fetch
from aj.bucket.storage import check_name

NO_FILE = "it is no regular file"
SHOWN = 5  # names of one remark


@dataclass(frozen=True)
class File:
    """One file: its path below the folder with `/` between the parts, and what tells that it did not change."""

    name: str
    size: int
    mtime_ns: int
    inode: int = 0
    mode: int = 0o644

    @property
    def state(self) -> tuple[int, int, int]:
        return self.size, self.mtime_ns, self.inode


@dataclass(frozen=True)
class Tree:
    """What is in a folder. `links` are symbolic links with what they say; `left` says why something is left out."""

    files: tuple[File, ...] = ()
    folders: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    left: tuple[str, ...] = ()


@dataclass
class _Found:
    files: list[File] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def scan(root: Path) -> Tree:
    """Look at everything below a folder. Raises AjError when it cannot be read."""
    found = _Found()
    for entry, name in _entries(root):
        try:
            _take(entry, name, found)
        except FileNotFoundError:
            continue  # removed between the listing and the look
    return Tree(tuple(found.files), tuple(found.folders), tuple(found.links), tuple(found.left))


def _entries(root: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(root / below) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise AjError(f"{root / below} cannot be read: {error.strerror}", code="unreadable-folder") from error
        for entry in entries:
            name = below + entry.name
            yield entry, name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name + "/")


def _take(entry: os.DirEntry[str], name: str, found: _Found) -> None:
    try:
        check_name(name)
    except UserError as error:
        found.left.append(error.message)
        return
    if fetch.is_ours(name):
        found.left.append(f"`{name}` is what is left of a download that broke off")
        return
    if entry.is_symlink():
        found.links.append((name, os.readlink(entry.path)))
    elif entry.is_dir(follow_symlinks=False):
        found.folders.append(name)
    elif entry.is_file(follow_symlinks=False):
        seen = entry.stat(follow_symlinks=False)
        found.files.append(File(name, seen.st_size, seen.st_mtime_ns, seen.st_ino, stat.S_IMODE(seen.st_mode)))
    else:
        found.left.append(f"`{name}` is no file")


def _plainly(error: OSError) -> OSError:
    """Say of what cannot be opened as a file what it is."""
    if error.errno == errno.ELOOP:
        return OSError(errno.ELOOP, "it is a link, and links are not followed")
    if error.errno == errno.ENXIO:  # a socket, or a device without a driver
        return OSError(errno.ENXIO, NO_FILE)
    return error


class Opened:
    """An open file of a folder as a source of bytes: `size` of them, as many as there were when it was opened."""

    def __init__(self, root: Path, name: str) -> None:
        """Raises FileNotFoundError when it is gone, OSError when it cannot be opened or is no plain file any more."""
        try:
            self._handle = os.open(root / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise _plainly(error) from error
        seen = os.fstat(self._handle)
        if not stat.S_ISREG(seen.st_mode):
            os.close(self._handle)
            raise OSError(errno.EINVAL, NO_FILE)
        self.size = seen.st_size
        self.mtime_ns = seen.st_mtime_ns

    def read(self, at: int, count: int) -> bytes:
        """Return a part of it."""
        due = max(0, min(count, self.size - at))
        pieces = bytearray()
        while len(pieces) < due and (piece := os.pread(self._handle, due - len(pieces), at + len(pieces))):
            pieces += piece
        return bytes(pieces)

    def has_changed(self) -> bool:
        """Tell whether it was written since it was opened."""
        seen = os.fstat(self._handle)
        return (seen.st_size, seen.st_mtime_ns) != (self.size, self.mtime_ns)

    def close(self) -> None:
        """Close it."""
        os.close(self._handle)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def shown(words: tuple[str, ...]) -> str:
    """Write remarks as one line: the first few, and how many more there are."""
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return "; ".join(words[:SHOWN]) + more
