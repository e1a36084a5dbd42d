"""Whole files, or none: written beside the target, made durable, then renamed over it.

A reader sees the old bytes or the new ones, never a part. Every file is 0600 and every folder 0700,
whatever the umask says. What a killed writer leaves ends in `.part` and is nobody's.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from aj.base.errors import AjError
from aj.model.json import Json

FILE_MODE = 0o600
FOLDER_MODE = 0o700
PART = ".part"


def cannot_write(path: Path | str, error: OSError) -> AjError:
    """Say which path could not be written and why."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return AjError(
        f"cannot write {path}: {reason}",
        code="cannot-write",
        hint="free some space, or point AJ_STATE_DIR to a folder that can be written",
    )


def make_folder(path: Path) -> Path:
    """Make a folder of ours durably, 0700, with its parents. Raises AjError naming the path.

    A folder that is there already keeps its mode.
    """
    if path.is_dir():
        return path
    try:
        _make(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def _make(path: Path) -> None:
    if not path.parent.is_dir():
        _make(path.parent)
    try:
        path.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        if path.is_dir():
            return  # another process made it between our look and now
        raise
    path.chmod(FOLDER_MODE)  # mkdir subtracts the umask
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems know no such call for folders
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def writing(path: Path, mode: int = FILE_MODE) -> Iterator[BinaryIO]:
    """Write a file in pieces; it appears whole at the end of the block, or not at all.

    Raises AjError naming the path when the disk refuses.
    """
    beside = path.with_name(f".{os.getpid()}.{os.urandom(6).hex()}{PART}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Write a whole file durably. Raises AjError naming the path when the disk refuses."""
    with writing(path, mode) as out:
        out.write(data)


def write_json(path: Path, value: Json) -> None:
    """Write one JSON document durably. Lone surrogates (odd file names) survive as escapes."""
    write_bytes(path, json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n")


def remove(path: Path) -> None:
    """Remove a file durably; one that is gone already is fine. Raises AjError naming the path."""
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except FileNotFoundError:
        return  # the folder itself is gone
    except OSError as error:
        raise cannot_write(path, error) from error


def sweep(folder: Path) -> None:
    """Remove what killed writers left in a folder. Only for who alone writes there."""
    # a leftover does no harm: the next sweep finds it again
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(PART):
                os.unlink(entry.path)


def is_wide(path: Path) -> bool:
    """Tell whether anybody but the owner may read or write a file."""
    try:
        return bool(path.stat().st_mode & 0o077)
    except OSError:
        return False


def set_aside(path: Path) -> Path:
    """Rename a damaged file to `NAME.damaged-N` and return where it is now. Never overwrites.

    Raises AjError naming the path.
    """
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    try:
        os.rename(path, aside)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    return aside
