"""Folders into buckets and back, file by file.

Upload adds: a file that is new or changed goes up under its own name, and nothing is ever removed there. Download
makes a folder what a prefix holds; with `exact` it holds nothing else afterwards. Both leave alone what is there
already in the same state, so one that broke off is simply begun again.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from aj.base import crash
from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.bucket import fetch, scan
from aj.bucket.digest import Moving
from aj.bucket.scan import File, Opened
from aj.bucket.storage import OURS, Source, Storage, objects, passed_over, unfit
from aj.bucket.transfer import Failed, Pace, Progress, carry
from aj.model.bucket import Stored
from aj.store import atomic

Chosen = Callable[[str], bool]


@dataclass(frozen=True)
class Uploaded:
    """What an upload did. `failed` says of each file that did not go why, `left` what cannot go at all.

    `moving` are files that were written to meanwhile: they went as they were, and go again in the next round.
    """

    files: int
    bytes: int
    skipped: int
    failed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    moving: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        """What is missing in the bucket, in words."""
        words = (*self.failed, *self.left, *(f"`{name}` is still written to" for name in self.moving))
        return scan.shown(words) if words else None


class Upload:
    """Uploads one folder again and again. `notes` is where it keeps what has gone up, for the next process."""

    def __init__(
        self, storage: Storage, root: Path, notes: Path | None = None, chosen: Chosen = lambda _: True
    ) -> None:
        self._storage = storage
        self._root = root
        self._notes = notes
        self._chosen = chosen
        self._known = _read(notes) if notes else {}
        self._there: Mapping[str, tuple[int, int | None]] = {}

    def look(self, pace: Pace) -> None:
        """Ask the bucket what is there: a file of the same size and time does not go up again."""
        found = pace.insist(lambda: list(objects(self._storage)))
        self._there = {one.name: (one.size_bytes, one.stamp) for one in found}

    def forget(self) -> None:
        """Know of nothing that went up: the folder begins anew."""
        self._known = {}
        self._write()

    def round(self, pace: Pace, progress: Progress | None = None) -> Uploaded:
        """Bring up what is new or changed since the last round. Raises Stopped, and what concerns every file."""
        told = progress or Progress()
        tree = scan.scan(self._root)
        inside, left = _linked(self._root, tree.links)
        files = [file for file in (*tree.files, *inside) if self._chosen(file.name)]
        due = [file for file in files if not self._is_there(file)]
        told.expect(len(files), sum(file.size for file in files))
        told.skip(len(files) - len(due), sum(file.size for file in files) - sum(file.size for file in due))

        def put(file: File) -> File | None:
            return self._put(file, told)

        carried = carry(due, put, pace)
        gone = [file for file in carried.done if file is not None]
        self._known |= {file.name: list(file.state) for file in gone}
        if gone:
            self._write()
        moving = tuple(one.part.name for one in carried.failed if isinstance(one.error, Moving))
        failed = tuple(_why(one) for one in carried.failed if not isinstance(one.error, Moving))
        size = sum(file.size for file in gone)
        return Uploaded(len(gone), size, len(files) - len(due), failed, (*tree.left, *left), moving)

    def _is_there(self, file: File) -> bool:
        known = self._known.get(file.name) == list(file.state)
        return known or self._there.get(file.name) == (file.size, file.mtime_ns)

    def _put(self, file: File, progress: Progress) -> File | None:
        """Put one file; None when it is gone by now. Raises Moving when it was written to meanwhile."""
        try:
            opened: Opened = _opened(self._root, file.name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise AjError(f"it cannot be read: {error.strerror}", code="unreadable-file") from error
        with opened:
            self._storage.put(file.name, _Whole(opened), progress.moved, opened.mtime_ns)
            progress.done()
            crash.point("upload.after-object")
            if opened.has_changed():
                raise Moving("it was written to while it was uploaded")
            return File(file.name, opened.size, opened.mtime_ns, file.inode, file.mode)

    def _write(self) -> None:
        if self._notes is not None:
            atomic.make_folder(self._notes.parent)
            atomic.write_json(self._notes, {name: tuple(state) for name, state in self._known.items()})


@dataclass(frozen=True)
class _Whole:
    """A file that must not become shorter while it is read."""

    inner: Source

    @property
    def size(self) -> int:
        return self.inner.size

    def read(self, at: int, count: int) -> bytes:
        """Return a part. Raises Moving."""
        found = self.inner.read(at, count)
        if len(found) != min(count, self.size - at):
            raise Moving("it became shorter while it was uploaded")
        return found


def _opened(root: Path, name: str) -> Opened:
    """Open a file, or what a link that stays inside leads to."""
    path = root / name
    if path.is_symlink():
        top = os.path.realpath(root)
        return Opened(Path(top), os.path.relpath(os.path.realpath(path), top))
    return Opened(root, name)


def _linked(root: Path, links: Sequence[tuple[str, str]]) -> tuple[list[File], list[str]]:
    """Return the files that links inside the folder lead to, under the links' names, and what is left out."""
    top = os.path.realpath(root)
    found: list[File] = []
    left: list[str] = []
    for name, _ in links:
        real = os.path.realpath(root / name)
        try:
            if not os.path.islink(root / name):
                continue  # gone meanwhile: the next round sees what is there
            if not real.startswith(top + os.sep):
                left.append(f"`{name}` leads out of the folder")
            elif not os.path.exists(real):
                left.append(f"`{name}` is a link that leads nowhere")
            elif os.path.isdir(real):
                left.append(f"`{name}` is a link to a folder, and not followed")
            elif not os.path.isfile(real):
                left.append(f"`{name}` is a link to what is no file")
            else:
                seen = os.stat(real)
                found.append(File(name, seen.st_size, seen.st_mtime_ns, seen.st_ino, seen.st_mode & 0o7777))
        except OSError:
            continue
    return found, left


def _why(one: Failed[File]) -> str:
    return f"`{one.part.name}`: {one.error.message}"


def _read(notes: Path) -> dict[str, list[int]]:
    try:
        value = json.loads(notes.read_bytes())
        return {str(name): [int(part) for part in state] for name, state in value.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # then everything goes up once more


# Download


@dataclass(frozen=True)
class Downloaded:
    """What a download brought. `told` says what of the bucket was passed over, and why."""

    files: int
    bytes: int
    skipped: int
    told: tuple[str, ...] = ()


def download(
    storage: Storage,
    root: Path,
    pace: Pace,
    *,
    notes: Path,
    progress: Progress | None = None,
    exact: bool = False,
) -> Downloaded:
    """Bring all objects but our own into a folder. Raises Stopped, what the storage raises, and AjError of the disk.

    `notes` keeps which state of each object was put in which state of a file: only such a file is left as it is.
    """
    told = progress or Progress()
    atomic.make_folder(root)
    passed: list[str] = []
    every = pace.insist(lambda: list(objects(storage, told=passed.append)))
    found = _fitting(storage, [one for one in every if not one.name.startswith(OURS)], passed)
    _check_places(found)
    known = _brought(notes)
    if exact:
        _drop_others(root, {one.name for one in found})
    there = {one.name: noted for one in found if (noted := known.get(one.name)) and noted == _seen(root, one)}
    due = [one for one in found if one.name not in there]
    total = sum(one.size_bytes for one in found)
    told.expect(len(found), total)
    told.skip(len(found) - len(due), total - sum(one.size_bytes for one in due))

    with _Notes(notes, there) as written:

        def bring(one: Stored) -> Stored:
            state = fetch.fetch(storage, one, root / one.name, pace, told)
            written.add(one, state)
            told.done()
            return one

        carry(due, bring, pace).strictly()
    _check_brought(root, due, _brought(notes))
    told_over = tuple(dict.fromkeys(passed))  # a listing that was tried again tells twice
    return Downloaded(len(due), sum(one.size_bytes for one in due), len(found) - len(due), told_over)


def _fitting(storage: Storage, found: Sequence[Stored], passed: list[str]) -> list[Stored]:
    """Return the objects whose names can be those of files here; tell of the others."""
    fitting = []
    for one in found:
        why = unfit(one.name)
        if why is None and fetch.is_ours(one.name):
            why = "it is what is left of a download that broke off"
        if why is None:
            fitting.append(one)
        else:
            passed.append(passed_over(storage.label, one.name, why))
    return fitting


Noted = tuple[str, int, int, int]  # the etag of an object, and the state of the file that was made of it


class _Notes:
    """What was brought, noted line by line as it is put in place: a download that is killed loses nothing of it."""

    def __init__(self, path: Path, there: Mapping[str, Noted]) -> None:
        self._guard = threading.Lock()
        atomic.make_folder(path.parent)
        with atomic.writing(path) as out:
            out.writelines(_line(name, noted) for name, noted in there.items())
        self._path = path

    def __enter__(self) -> _Notes:
        try:
            self._out = self._path.open("ab", buffering=0)
        except OSError as error:
            raise atomic.cannot_write(self._path, error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()

    def add(self, one: Stored, state: fetch.State) -> None:
        """Note an object whose file was put in place just now. Raises AjError when the disk refuses."""
        try:
            with self._guard:
                self._out.write(_line(one.name, (one.etag, *state)))
        except OSError as error:
            raise atomic.cannot_write(self._path, error) from error


def _line(name: str, noted: Noted) -> bytes:
    return json.dumps([name, *noted]).encode("ascii") + b"\n"


def _brought(notes: Path) -> dict[str, Noted]:
    """Return what was put in place by earlier downloads. A line that is no note is as good as none."""
    found: dict[str, Noted] = {}
    try:
        lines = notes.read_bytes().splitlines()
    except OSError:
        return found
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):
            name, etag, size, mtime_ns, inode = json.loads(line)
            found[str(name)] = (str(etag), int(size), int(mtime_ns), int(inode))
    return found


def _seen(root: Path, one: Stored) -> Noted | None:
    """Return what a note says of an object whose file is there in just the state in which it was put there."""
    try:
        seen = os.lstat(root / one.name)
    except OSError:
        return None
    return (one.etag, *fetch.state(seen)) if seen.st_size == one.size_bytes else None


def _check_brought(root: Path, due: Sequence[Stored], known: Mapping[str, Noted]) -> None:
    """Refuse when a file is not the one that was brought for its name. Raises UserError.

    There are file systems for which `a` and `A` are one name: then the second has replaced the first.
    """
    for one in due:
        seen = _seen(root, one)
        if seen is None or known.get(one.name) != seen:
            raise UserError(
                f"`{root / one.name}` was replaced while others were brought: this folder cannot hold both",
                code="no-folder",
                hint="download into an empty folder of a file system that tells upper from lower case",
            )


def _check_places(found: Sequence[Stored]) -> None:
    """Refuse a bucket that no folder can hold: an object whose name is also a part of others'. Raises UserError."""
    names = {one.name for one in found}
    for name in names:
        at = name.rfind("/")
        while at > 0:
            if name[:at] in names:
                raise UserError(
                    f"the bucket has an object `{name[:at]}` and one `{name}`: no folder can hold both",
                    code="no-folder",
                    hint="remove or rename one of them",
                )
            at = name.rfind("/", 0, at)


def _drop_others(root: Path, names: set[str]) -> None:
    """Remove what is not in the bucket; of downloads that broke off what belongs to an object stays."""
    tree = scan.scan(root)
    for file in (*(file.name for file in tree.files), *(name for name, _ in tree.links)):
        if file not in names:
            (root / file).unlink(missing_ok=True)
    due = {fetch.part_of(root / name) for name in names}
    for folder in ("", *tree.folders):
        fetch.sweep(root / folder, due)
    for folder in reversed(tree.folders):
        try:
            (root / folder).rmdir()
        except OSError:
            continue  # it holds something that stays
