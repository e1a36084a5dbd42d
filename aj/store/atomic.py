"""Whole files, or none: written beside the target, made durable, then renamed over it.

A reader sees the old bytes or the new ones, never a part. Every file is 0600 and every folder 0700,
whatever the umask says.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from aj.base.errors import AjError
from aj.model.json import Json

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def cannot_write(path: Path | str, error: OSError) -> AjError:
    """Say which path could not be written and why."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return AjError(
        f"cannot write {path}: {reason}",
        code="cannot-write",
        hint="free some space, or point AJ_STATE_DIR to a folder that can be written",
    )


def make_folder(path: Path) -> Path:
    """Make a folder of ours, 0700, with its parents. Raises AjError naming the path."""
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def writing(path: Path, mode: int = FILE_MODE) -> Iterator[BinaryIO]:
    """Write a file in pieces; it appears whole at the end of the block, or not at all.

    Raises AjError naming the path when the disk refuses.
    """
    beside = path.with_name(f".{path.name[:80]}.{os.getpid()}.{os.urandom(4).hex()}.part")
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
    write_bytes(path, json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n")


def set_aside(path: Path) -> Path:
    """Rename a damaged file to `NAME.damaged-N` and return where it is now. Never overwrites."""
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.damaged-{number}")
        if not aside.exists():
            os.rename(path, aside)
            return aside
        number += 1
