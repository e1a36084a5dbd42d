"""Buckets that are folders of this machine, or of whatever it has mounted: an object is a file.

    ROOT/BUCKET/a/b.pt             the object `a/b.pt`
    ROOT/BUCKET/.aj-bucket/        ours: the mark, the lock of conditional writes, files on their way

A file appears under its name when it is whole and on the disk. What a killed writer left lies in `.aj-bucket`,
where nobody sees it, and is swept by whoever writes next after a day.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from aj.base.clock import SYSTEM
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.bucket.storage import PAGE, Bytes, Moved, Seen, Source, check_name
from aj.model.bucket import Owner, Page, Stored
from aj.store import atomic, lock

PIECE = 4 << 20  # bytes that are held in memory while a file is copied
SPARE = ".aj-bucket"
TRIES = 5  # against somebody who removes empty folders
STALE_S = 24 * 3600.0  # a file on its way for longer than that has lost its writer
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]\Z", re.ASCII)


def check_bucket(name: str) -> str:
    """Return the name of a bucket. Raises UserError on one that no storage takes."""
    if not _NAME.match(name) or ".." in name:
        hint = "3 to 63 lower-case letters, digits and `-`, a letter or digit at both ends"
        raise UserError(f"`{name}` cannot name a bucket", hint=hint, code="bad-bucket-name")
    return name


def names(root: Path) -> list[str]:
    """Return the buckets below a folder."""
    try:
        with os.scandir(root) as listed:
            found = sorted(entry.name for entry in listed if entry.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise AjError(f"{root}: {error.strerror}", code="unreadable-bucket") from error
    return [name for name in found if _NAME.match(name)]


@dataclass(frozen=True)
class Folder:
    """One bucket below `root`."""

    root: Path
    bucket: str

    @property
    def path(self) -> Path:
        return self.root / check_bucket(self.bucket)

    @property
    def label(self) -> str:
        return str(self.path)

    @property
    def _spare(self) -> Path:
        return self.path / SPARE

    # the bucket

    def look(self) -> Seen | None:
        """Return what is there."""
        if not self.path.is_dir():
            return None
        try:
            value = json.loads((self._spare / "owner.json").read_bytes())
            return Seen(Owner(str(value["job"]), str(value["nonce"])))
        except (OSError, ValueError, KeyError, TypeError):
            return Seen()

    def create(self, owner: Owner | None = None) -> bool:
        """Make the folder and mark it."""
        atomic.make_folder(self.root)
        try:
            os.mkdir(self.path, atomic.FOLDER_MODE)  # exclusive: of two makers one has made it
        except FileExistsError:
            return False
        except OSError as error:
            raise atomic.cannot_write(self.path, error) from error
        if owner is not None:
            atomic.make_folder(self._spare)
            atomic.write_json(self._spare / "owner.json", {"job": owner.job, "nonce": owner.nonce})
        return True

    def delete(self) -> None:
        """Remove the folder: out of sight at once, then piece by piece."""
        gone = self.root / f".gone-{self.bucket}-{os.urandom(4).hex()}"
        try:
            os.rename(self.path, gone)
        except FileNotFoundError:
            return
        except OSError as error:
            raise AjError(f"cannot remove {self.path}: {error.strerror}", code="cannot-remove") from error
        try:
            shutil.rmtree(gone)
        except OSError as error:
            raise AjError(f"cannot remove {gone}: {error.strerror}", code="cannot-remove") from error

    # objects

    def page(self, prefix: str, cursor: str | None, limit: int = PAGE) -> Page:
        """Return a part of the listing; the cursor is the name of the last object told."""
        self._need()
        found: list[Stored] = []
        for name in self._names(prefix, cursor):
            if len(found) == limit:
                return Page(tuple(found), found[-1].name)
            with contextlib.suppress(NotFound):  # removed between the listing and the look
                found.append(self.head(name))
        return Page(tuple(found))

    def _names(self, prefix: str, after: str | None) -> Iterator[str]:
        """Yield names in byte order below a prefix and behind a name, without walking what cannot fit."""
        base = prefix.rpartition("/")[0]
        stack = [base + "/" if base else ""]
        while stack:
            at = stack.pop()
            if at and not at.endswith("/"):
                if at.startswith(prefix) and (after is None or at > after):
                    yield at
                continue
            if at and not (at.startswith(prefix) or prefix.startswith(at)):
                continue
            if at and after is not None and not after.startswith(at) and at < after:
                continue
            stack += reversed(self._entries(at))

    def _entries(self, at: str) -> list[str]:
        try:
            with os.scandir(self.path / at) as entries:
                found = [at + entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "") for entry in entries]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise AjError(f"{self.path / at}: {error.strerror}", code="unreadable-bucket") from error
        return sorted(name for name in found if name != f"{SPARE}/")

    def head(self, name: str) -> Stored:
        """Return one object."""
        try:
            found = os.stat(self._file(name), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            raise self._absent(name) from None
        except OSError as error:
            raise AjError(f"{self._file(name)}: {error.strerror}", code="unreadable-object") from error
        if not stat.S_ISREG(found.st_mode):
            raise self._absent(name)
        return _stored(name, found)

    def read(self, name: str, at: int, count: int, etag: str | None = None) -> bytes:
        """Return a part of an object."""
        try:
            handle = os.open(self._file(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            raise self._absent(name) from None
        except OSError as error:
            raise AjError(f"{self._file(name)}: {error.strerror}", code="unreadable-object") from error
        try:
            if etag is not None and _stored(name, os.fstat(handle)).etag != etag:
                raise Refused(f"{self.label}/{name} was changed meanwhile", code="conflict")
            return _whole(handle, at, count)
        finally:
            os.close(handle)

    def put(self, name: str, source: Source, moved: Moved | None = None, stamp: int | None = None) -> Stored:
        """Write an object beside its place, then put it there."""
        self._need()
        with self._beside(name, source, moved, stamp) as beside:
            return self._move(beside, name)

    def swap(self, name: str, data: bytes, etag: str | None) -> Stored:
        """Write a small object while nobody else does on a condition."""
        self._need()
        with self._beside(name, Bytes(data), None, None) as beside, lock.held(self._spare / "swap.lock"):
            try:
                stands: str | None = self.head(name).etag
            except NotFound:
                stands = None
            if stands != etag:
                raise Refused(f"{self.label}/{name} was changed meanwhile", code="conflict")
            return self._move(beside, name)

    def remove(self, name: str) -> None:
        """Remove an object, and the folders that held nothing else."""
        file = self._file(name)
        try:
            file.unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise AjError(f"cannot remove {file}: {error.strerror}", code="cannot-remove") from error
        for folder in file.parents:
            if folder == self.path:
                return
            try:
                folder.rmdir()
            except OSError:
                return  # it holds something else

    @contextlib.contextmanager
    def _beside(self, name: str, source: Source, moved: Moved | None, stamp: int | None) -> Iterator[Path]:
        self._file(name)
        atomic.make_folder(self._spare)
        beside = self._spare / f"{os.urandom(8).hex()}.part"
        self._sweep()
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, atomic.FILE_MODE)
            with os.fdopen(handle, "wb") as out:
                for at in range(0, source.size, PIECE):
                    piece = source.read(at, PIECE)
                    out.write(piece)
                    if moved is not None:
                        moved(len(piece))
                out.flush()
                if stamp is not None:
                    os.utime(out.fileno(), ns=(stamp, stamp))
                os.fsync(out.fileno())
            yield beside
        except OSError as error:
            raise atomic.cannot_write(self.path / name, error) from error
        finally:
            beside.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what killed writers left long ago."""
        # a leftover does no harm: the next writer finds it again
        with contextlib.suppress(OSError), os.scandir(self._spare) as entries:
            for entry in entries:
                if entry.name.endswith(".part") and entry.stat().st_ctime < SYSTEM.now() - STALE_S:
                    os.unlink(entry.path)

    def _move(self, beside: Path, name: str) -> Stored:
        file = self._file(name)
        try:
            _put_there(beside, file)
        except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
            words = f"{self.label}/{name}: a folder cannot hold both an object and a part of other names like it"
            raise Refused(words, code="name-taken") from error
        except OSError as error:
            raise atomic.cannot_write(file, error) from error
        atomic.sync_folder(file.parent)
        return self.head(name)

    def _file(self, name: str) -> Path:
        if check_name(name).partition("/")[0] == SPARE:
            raise UserError(f"`{SPARE}` is not for objects", code="bad-name")
        return self.path / name

    def _need(self) -> None:
        if not self.path.is_dir():
            raise NotFound(f"no bucket {self.label}", code="no-such-bucket", hint=f"`aj bucket create {self.bucket}`")

    def _absent(self, name: str) -> NotFound:
        self._need()
        return NotFound(f"no object {name} in {self.label}", code="no-such-object")


def _put_there(beside: Path, file: Path) -> None:
    """Give a file its name. A remover may take the empty folder away at that very moment: then again."""
    for left in reversed(range(TRIES)):
        file.parent.mkdir(mode=atomic.FOLDER_MODE, parents=True, exist_ok=True)
        try:
            os.replace(beside, file)
            return
        except FileNotFoundError:
            if not left:
                raise


def _stored(name: str, found: os.stat_result) -> Stored:
    etag = f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"
    return Stored(name, found.st_size, etag, found.st_mtime_ns / 1e9, found.st_mtime_ns)


def _whole(handle: int, at: int, count: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < count and (piece := os.pread(handle, count - len(pieces), at + len(pieces))):
        pieces += piece
    return bytes(pieces)
