"""First use of a part of the single file: unpack it into the cache, whole or not at all.

The cache is the user's own folder. When nothing may run from it or nothing can be written into it,
the part goes to a private temporary folder for this one process. Under the cache's lock, what killed
processes left half-made is removed, and so are builds that nobody ran for a month.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

LOCK = ".unpack.lock"
HALF = ".unpack-"
PRIVATE = f"aj-unpacked-{os.getuid()}-"
MADE = re.compile(r"[0-9a-f]{16}-[a-z]*\d+t?-[a-z]+-\w+(-[a-z]+)?")

UNUSED_S = 30 * 24 * 3600  # a build not started for this long is removed
ORPHAN_S = 60  # a private folder this old that nobody holds is removed; a new one may not be held yet
LOCK_WAIT_S = 30.0  # unpacking takes about a second; a holder that takes longer is stopped or hangs
SYNC_THREADS = 16  # flushes that wait together share one commit of the file system's journal

Hold = Callable[[str], bool]
Distrust = Callable[[str], "str | None"]


class Unusable(OSError):
    """Neither the cache nor a temporary folder can take the part, or the file itself is damaged."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Source:
    """One part in the single file, and the name of its unpacked folder."""

    archive: str
    tag: str
    group: str
    name: str

    def contents(self) -> Iterator[tuple[str, memoryview]]:
        """Yield each path of the part with its bytes. Raises Unusable on a damaged file."""
        try:
            with zipfile.ZipFile(self.archive) as members:
                index = json.loads(members.read(f"{self.tag}.json"))
                for pack, files in index[self.group].items():
                    data = memoryview(members.read(pack))
                    for path, start, size in files:
                        yield path, data[start : start + size]
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
            raise Unusable(f"the file is damaged ({error})", "get the file again") from error


def first_use(source: Source, cache: str, hold: Hold, distrust: Distrust) -> str:
    """Unpack a part and mark it as used. Raises Unusable."""
    trouble = distrust(cache) or unsafe_parent(cache)
    if trouble is None:
        try:
            return settle(source, cache, hold)
        except Unusable:
            raise
        except OSError as error:
            trouble = f"cannot be used ({told(error)})"
    note = f"aj: the cache {cache} {trouble}, so this run unpacks to a temporary folder\n"
    if sys.stderr is not None:
        sys.stderr.write(note + "hint: `export AJ_CACHE_DIR=/some/folder` names another place\n")
    try:
        return settle(source, private_folder(hold), hold)
    except Unusable:
        raise
    except OSError as error:
        raise Unusable(told(error), "`export AJ_CACHE_DIR=/some/folder` names a place with room") from error


def told(error: OSError) -> str:
    """Say what went wrong and where, in words."""
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}"


def unsafe_parent(cache: str) -> str | None:
    """Return why the folder above the cache could be exchanged by somebody else, or None."""
    folder = os.path.dirname(os.path.realpath(cache))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    found = os.stat(folder)
    if found.st_uid not in (0, os.getuid()):
        return f"lies in {folder}, which belongs to another user (uid {found.st_uid})"
    is_shared = found.st_mode & 0o002 and not found.st_mode & 0o1000
    return f"lies in {folder}, which everybody can write" if is_shared else None


def settle(source: Source, cache: str, hold: Hold) -> str:
    """Make the folder of a part in a cache, once, however many ask for it at a time."""
    os.makedirs(cache, mode=0o700, exist_ok=True)
    folder = os.path.join(cache, source.name)
    with locked(cache) as is_locked:
        if hold(folder):
            return folder
        if is_locked:
            tidy(cache, folder)
        half = tempfile.mkdtemp(prefix=HALF, dir=cache)
        try:
            write(source, half)
            publish(half, folder)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise
        if not hold(folder):
            raise OSError(f"{folder} vanished at once")
    return folder


@contextlib.contextmanager
def locked(cache: str) -> Iterator[bool]:
    """Hold the lock of a cache; False when there is none to be had.

    Without it all stays correct, since a part appears by one rename; only work is done twice.
    """
    lock = os.open(os.path.join(cache, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    limit = time.monotonic() + LOCK_WAIT_S
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_locked = True
            except BlockingIOError:
                if time.monotonic() < limit:
                    time.sleep(0.02)
                    continue
                is_locked = False
            except OSError:
                is_locked = False  # a file system without locks
            break
        yield is_locked
    finally:
        os.close(lock)


def write(source: Source, folder: str) -> None:
    """Write all files of a part and wait until they are on the disk."""
    made = {folder}
    paths = []
    for path, data in source.contents():
        target = os.path.join(folder, path)
        make_folder(os.path.dirname(target), made)
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        paths.append(target)
    mark(folder)
    with ThreadPoolExecutor(SYNC_THREADS) as threads:
        # After a power cut a folder that has its name already but empty files would be broken for good.
        list(threads.map(sync, (paths[first::SYNC_THREADS] for first in range(SYNC_THREADS))))


def mark(folder: str) -> None:
    """Put the file into a folder by whose locks is known who uses it."""
    os.close(os.open(os.path.join(folder, ".use"), os.O_WRONLY | os.O_CREAT, 0o600))


def make_folder(folder: str, made: set[str]) -> None:
    if folder not in made:
        make_folder(os.path.dirname(folder), made)
        os.mkdir(folder, 0o700)
        made.add(folder)


def sync(paths: list[str]) -> None:
    """Wait until these files are on the disk."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def publish(half: str, folder: str) -> None:
    """Give a finished folder its name; when another process was faster without a lock, keep that one."""
    try:
        os.rename(half, folder)
    except OSError:
        if not os.path.isdir(folder):
            raise
        shutil.rmtree(half, ignore_errors=True)


def tidy(cache: str, broken: str) -> None:
    """Remove half-made folders, the one that cannot be held, and builds out of use. Under the lock."""
    with os.scandir(cache) as entries:
        found = list(entries)
    for entry in found:
        if entry.name.startswith(HALF):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.path == broken:
            discard(entry.path)
        elif MADE.fullmatch(entry.name):
            with sole_use(entry.path, UNUSED_S) as is_mine:
                if is_mine:
                    discard(entry.path)


def discard(folder: str) -> None:
    """Take a folder out of sight in one step, then remove it."""
    grave = tempfile.mkdtemp(prefix=HALF, dir=os.path.dirname(folder))
    os.rename(folder, os.path.join(grave, "gone"))
    shutil.rmtree(grave, ignore_errors=True)


@contextlib.contextmanager
def sole_use(folder: str, unused_s: float) -> Iterator[bool]:
    """Hold a part alone; False when a process runs from it or one did within `unused_s` seconds."""
    try:
        file = os.open(os.path.join(folder, ".use"), os.O_RDWR)
    except OSError:
        yield False
        return
    try:
        is_old = os.fstat(file).st_mtime < time.time() - unused_s
        yield is_old and lock_alone(file)
    finally:
        os.close(file)


def lock_alone(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # in use, or a file system on which nobody can tell
    return True


def private_folder(hold: Hold) -> str:
    """Make a temporary folder that goes when this process ends; remove those whose process did not tidy up."""
    parent = tempfile.gettempdir()
    with os.scandir(parent) as entries:
        others = [entry for entry in entries if entry.name.startswith(PRIVATE)]
    for entry in others:
        remove_orphan(entry)
    made = tempfile.mkdtemp(prefix=PRIVATE, dir=parent)
    mark(made)
    hold(made)
    atexit.register(remove_own, made, os.getpid())
    return made


def remove_orphan(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid():
        with sole_use(entry.path, ORPHAN_S) as is_mine:
            if is_mine:
                shutil.rmtree(entry.path, ignore_errors=True)


def remove_own(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # a forked child leaves it to its parent
        shutil.rmtree(folder, ignore_errors=True)
