"""Buckets that are folders of this machine, or of whatever it has mounted: an object is a file.

    ROOT/BUCKET/a/b.pt             the object `a/b.pt`
    ROOT/BUCKET/.aj-bucket/        ours: the mark, the lock of conditional writes, files on their way

Nothing is reached through a link: a link, and whatever else is no file, is no object, whoever put it there. What
cannot be an object is passed over and told.

A file appears under its name when it is whole and on the disk. What a killed writer left lies in `.aj-bucket`,
where nobody sees it, and is swept by whoever writes next after a day.
"""

from __future__ import annotations

import contextlib
import errno
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
from aj.bucket.storage import PAGE, Bytes, Moved, Seen, Source, check_name, passed_over, unfit
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
        odd: dict[str, str] = {}
        told: list[str] = []
        for name in self._names(prefix, cursor, odd):
            if name in odd:
                told.append(passed_over(self.label, name, odd[name]))
                continue
            if len(found) == limit:
                return Page(tuple(found), found[-1].name, tuple(told))
            with contextlib.suppress(NotFound, Refused):  # removed or replaced between the listing and the look
                found.append(self.head(name))
        return Page(tuple(found), told=tuple(told))

    def _names(self, prefix: str, after: str | None, odd: dict[str, str]) -> Iterator[str]:
        """Yield names in byte order below a prefix and behind a name, without walking what cannot fit.

        Among them are names of what is no object; `odd` then says why.
        """
        base = prefix.rpartition("/")[0]
        if base:
            check_name(base)
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
            stack += reversed(self._entries(at, odd))

    def _entries(self, at: str, odd: dict[str, str]) -> list[str]:
        found = []
        try:
            with self._inside(at.removesuffix("/"), flags=os.O_RDONLY) as handle, os.scandir(handle) as entries:
                for entry in entries:
                    name = at + entry.name
                    is_folder = entry.is_dir(follow_symlinks=False)
                    why = None if name == SPARE else _no_object(entry, name, is_folder=is_folder)
                    if why is not None:
                        odd[name] = why
                    found.append(f"{name}/" if is_folder and why is None else name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise AjError(f"{self.path / at}: {error.strerror}", code="unreadable-bucket") from error
        return sorted(name for name in found if name.removesuffix("/") != SPARE)

    @contextlib.contextmanager
    def _inside(self, folder: str, *, make: bool = False, flags: int = os.O_PATH) -> Iterator[int]:
        """Open a folder of the bucket part by part, so that no link leads out of it; with `make`, make what is missing.

        Raises Refused at a link, FileNotFoundError and NotADirectoryError, which say that nothing is there, OSError.
        """
        flags |= os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        parts = folder.split("/") if folder else []
        handle = os.open(self.path, flags & ~os.O_NOFOLLOW)  # the bucket itself may be a link
        try:
            for number, part in enumerate(parts, start=1):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, atomic.FOLDER_MODE, dir_fd=handle)
                try:
                    inner = os.open(part, flags, dir_fd=handle)
                except NotADirectoryError:
                    self._refuse_link(handle, parts[:number])
                    raise
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def _refuse_link(self, handle: int, parts: list[str]) -> None:
        if stat.S_ISLNK(os.stat(parts[-1], dir_fd=handle, follow_symlinks=False).st_mode):
            words = f"{self.label}/{'/'.join(parts)} is a link, and what it leads to is no part of the bucket"
            raise Refused(words, code="through-link")

    def head(self, name: str) -> Stored:
        """Return one object."""
        try:
            folder, last = self._place(name)
            with self._inside(folder) as handle:
                found = os.stat(last, dir_fd=handle, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            raise self._absent(name) from None
        except OSError as error:
            raise AjError(f"{self.path / name}: {error.strerror}", code="unreadable-object") from error
        if not stat.S_ISREG(found.st_mode):
            raise self._absent(name)
        return _stored(name, found)

    def read(self, name: str, at: int, count: int, etag: str | None = None) -> bytes:
        """Return a part of an object."""
        try:
            folder, last = self._place(name)
            with self._inside(folder) as above:
                handle = os.open(last, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
        except (FileNotFoundError, NotADirectoryError):
            raise self._absent(name) from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise self._absent(name) from None  # a link or a socket is no object
            raise AjError(f"{self.path / name}: {error.strerror}", code="unreadable-object") from error
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise self._absent(name)
            if etag is not None and _stored(name, found).etag != etag:
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
        folder, last = self._place(name)
        try:
            with self._inside(folder) as handle:
                os.unlink(last, dir_fd=handle)
        except NotADirectoryError:
            return
        except FileNotFoundError:
            pass  # the folders that held it may still be there
        except OSError as error:
            raise AjError(f"cannot remove {self.path / name}: {error.strerror}", code="cannot-remove") from error
        while folder:
            folder, _, last = folder.rpartition("/")
            try:
                with self._inside(folder) as handle:
                    os.rmdir(last, dir_fd=handle)
            except (OSError, Refused):
                return  # it holds something else

    @contextlib.contextmanager
    def _beside(self, name: str, source: Source, moved: Moved | None, stamp: int | None) -> Iterator[Path]:
        self._place(name)
        if self._spare.is_symlink():
            raise Refused(f"{self._spare} is a link: remove it", code="through-link")
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
        try:
            self._put_there(beside, name)
        except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
            words = f"{self.label}/{name}: a folder cannot hold both an object and a part of other names like it"
            raise Refused(words, code="name-taken") from error
        except OSError as error:
            raise atomic.cannot_write(self.path / name, error) from error
        return self.head(name)

    def _put_there(self, beside: Path, name: str) -> None:
        """Give a file its name. A remover may take the empty folder away at that very moment: then again."""
        folder, last = self._place(name)
        for left in reversed(range(TRIES)):
            try:
                with self._inside(folder, make=True, flags=os.O_RDONLY) as handle:
                    os.replace(beside, last, dst_dir_fd=handle)
                    _sync(handle)
                return
            except FileNotFoundError:
                if not left:
                    raise

    def _place(self, name: str) -> tuple[str, str]:
        """Return the folder of an object, below the bucket, and its name there. Raises UserError."""
        if check_name(name).partition("/")[0] == SPARE:
            raise UserError(f"`{SPARE}` is not for objects", code="bad-name")
        folder, _, last = name.rpartition("/")
        return folder, last

    def _need(self) -> None:
        if not self.path.is_dir():
            raise NotFound(f"no bucket {self.label}", code="no-such-bucket", hint=f"`aj bucket create {self.bucket}`")

    def _absent(self, name: str) -> NotFound:
        self._need()
        return NotFound(f"no object {name} in {self.label}", code="no-such-object")


def _no_object(entry: os.DirEntry[str], name: str, *, is_folder: bool) -> str | None:
    """Say why what lies in a bucket is neither an object nor a folder of objects."""
    why = unfit(name)
    if why is not None:
        return f"no object can have this name: {why}"
    if entry.is_symlink():
        return "it is a link, and links are not followed"
    if not is_folder and not entry.is_file(follow_symlinks=False):
        return "it is no regular file"
    return None


def _sync(handle: int) -> None:
    """Make the names in a folder durable."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems know no such call for folders
            raise


def _stored(name: str, found: os.stat_result) -> Stored:
    etag = f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"
    return Stored(name, found.st_size, etag, found.st_mtime_ns / 1e9, found.st_mtime_ns)


def _whole(handle: int, at: int, count: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < count and (piece := os.pread(handle, count - len(pieces), at + len(pieces))):
        pieces += piece
    return bytes(pieces)
