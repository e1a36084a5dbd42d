"""An archive to a folder: checked first, then unpacked beside the target, then put in its place as a whole.

Only what `archive` writes is understood: files, folders and links. A member can land nowhere but below the
target: its name may not climb, and the folder it goes into must be one that the archive itself made, so that
nothing is written through a link.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from aj.base.errors import AjError, Refused
from aj.pack import tar
from aj.pack.selection import shown

PIECE = 1 << 20
_CHECKSUM = slice(148, 156)


def extract(archive: Path, sha256: str, target: Path) -> None:
    """Unpack an archive into a new folder `target`, whose parent exists.

    Raises AjError when the archive is gone, is not the one that `sha256` names, or holds what does not belong in
    one; Refused when the target is there already. Then no target is left behind.
    """
    if os.path.lexists(target):
        raise Refused(f"{target} is there already")
    beside = target.with_name(f".{_short(target.name)}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        with archive.open("rb") as source:
            _check(source, archive, sha256)
            beside.mkdir(mode=0o700)
            _Unpacking(archive, os.fsencode(beside)).run(_Plain(source, archive))
        os.rename(beside, target)
    except ValueError as error:  # a number that is none
        raise _damaged(archive, "has a broken member") from error
    except OSError as error:
        raise AjError(f"cannot unpack {archive} to {target}: {error.strerror}", code="cannot-unpack") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _short(name: str) -> str:
    """Cut a name so that another word fits behind it: file systems count bytes."""
    return os.fsencode(name)[:80].decode(errors="ignore")


def _damaged(archive: Path, why: str) -> AjError:
    return AjError(f"the code archive {archive} {why}", code="damaged-archive", hint=f"rm {archive}, and submit again")


def _check(source: BufferedReader, archive: Path, sha256: str) -> None:
    """Compare the SHA-256, and go back to the beginning. Raises AjError."""
    found = hashlib.file_digest(source, "sha256").hexdigest()
    if found != sha256:
        raise _damaged(archive, f"is damaged: its SHA-256 is {found}, not {sha256}")
    source.seek(0)


class _Plain:
    """The tar inside, read in pieces."""

    def __init__(self, source: BufferedReader, archive: Path) -> None:
        self._source = source
        self._archive = archive
        self._inflater = zlib.decompressobj(31)
        self._held = b""
        self._at = 0

    def read(self, size: int) -> bytes:
        """Return exactly this many bytes. Raises AjError when there are not so many."""
        while len(self._held) - self._at < size:
            more = self._more()
            if not more:
                raise _damaged(self._archive, "ends too early")
            self._held = self._held[self._at :] + more
            self._at = 0
        self._at += size
        return self._held[self._at - size : self._at]

    def _more(self) -> bytes:
        try:
            while not self._inflater.eof:
                packed = self._inflater.unconsumed_tail or self._source.read(PIECE)
                more = self._inflater.decompress(packed, PIECE)
                if more or not packed:
                    return more
        except zlib.error as error:
            raise _damaged(self._archive, f"cannot be unpacked: {error}") from error
        return b""

    def pieces(self, size: int) -> Iterator[bytes]:
        """Give a content, and pass over what fills its last block."""
        left = size
        while left:
            piece = self.read(min(left, PIECE))
            left -= len(piece)
            yield piece
        self.read(-size % tar.BLOCK)


class _Unpacking:
    """Members to files below one folder."""

    def __init__(self, archive: Path, root: bytes) -> None:
        self._archive = archive
        self._root = root
        self._folders = {b""}

    def run(self, plain: _Plain) -> None:
        extended: dict[bytes, bytes] = {}
        while any(header := plain.read(tar.BLOCK)):
            self._verify(header)
            kind = header[156:157]
            size = int(extended.get(b"size") or header[124:135].rstrip(b" \0"), 10 if b"size" in extended else 8)
            if kind == b"x":
                extended = self._records(b"".join(plain.pieces(size)))
                continue
            path = extended.get(b"path") or _field(header, 345, 500, b"/") + _field(header, 0, 100)
            target = extended.get(b"linkpath") or _field(header, 157, 257)
            self._place(path, kind, int(header[100:107], 8), target, plain.pieces(size))
            extended = {}

    def _verify(self, header: bytes) -> None:
        found = sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" ")
        if not header[148:154].isdigit() or int(header[148:154], 8) != found:
            raise _damaged(self._archive, "has a broken member")

    def _records(self, data: bytes) -> dict[bytes, bytes]:
        found = {}
        while data:
            length = int(data.partition(b" ")[0])
            key, _, value = data[:length].partition(b" ")[2].partition(b"=")
            found[key] = value[:-1]
            data = data[length:]
        return found

    def _place(self, path: bytes, kind: bytes, mode: int, target: bytes, content: Iterator[bytes]) -> None:
        name = path.removesuffix(b"/") if kind == tar.FOLDER else path
        parts = name.split(b"/")
        above = b"/".join(parts[:-1])
        if not all(parts) or b"." in parts or b".." in parts or b"\0" in name or above not in self._folders:
            raise _damaged(self._archive, f"holds `{shown(path)}`, which would land elsewhere")
        place = self._root + b"/" + name
        if kind == tar.FOLDER:
            os.mkdir(place)
            os.chmod(place, mode)
            self._folders.add(name)
        elif kind == tar.LINK:
            os.symlink(target, place)
        elif kind == tar.FILE:
            self._file(place, mode, content)
        else:
            raise _damaged(self._archive, f"holds `{shown(path)}`, which is no file, folder or link")

    def _file(self, place: bytes, mode: int, content: Iterator[bytes]) -> None:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as out:
            for piece in content:
                out.write(piece)
            os.fchmod(out.fileno(), mode)


def _field(header: bytes, start: int, end: int, then: bytes = b"") -> bytes:
    """Read a name from a header, with something after it unless it is empty."""
    name = header[start:end].partition(b"\0")[0]
    return name + then if name else b""
