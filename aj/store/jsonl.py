"""History by the line: one JSON object a line, appended durably, read forgivingly.

A last line without its newline was being written when something stopped: a reader drops it, and the
next writer cuts it off first, so that it never becomes a broken line in the middle. A broken line in
the middle is told with its number and hides no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from aj.model.json import Json
from aj.store.atomic import FILE_MODE, cannot_write, sync_folder

BLOCK = 1 << 16  # how far back one look for the last newline reaches


def append(path: Path, value: Mapping[str, Json]) -> bool:
    """Append one line and make it durable; True when the file had a wider mode and was narrowed.

    The caller holds the lock of this file. Raises AjError naming the path; the file then holds the
    same lines as before.
    """
    line = json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        narrowed = _narrow(handle)
        end = _cut_torn_tail(handle)
        try:
            _write_all(handle, line, end)
            os.fsync(handle)
            if not end:
                sync_folder(path.parent)  # the file may be new: its name must last as well
        except OSError:
            os.ftruncate(handle, end)
            raise
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        os.close(handle)
    return narrowed


def _narrow(handle: int) -> bool:
    mode = os.fstat(handle).st_mode & 0o777
    if mode != FILE_MODE:
        os.fchmod(handle, FILE_MODE)
    return bool(mode & 0o077)


def _cut_torn_tail(handle: int) -> int:
    """Cut off what stands after the last newline and return the size."""
    size = os.fstat(handle).st_size
    end = _end_of_last_line(handle, size)
    if end != size:
        os.ftruncate(handle, end)
    return end


def _write_all(handle: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(handle, data, offset)
        data, offset = data[written:], offset + written


def _end_of_last_line(handle: int, end: int) -> int:
    """Return the offset just after the last newline."""
    while end:
        start = max(0, end - BLOCK)
        at = os.pread(handle, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def read(path: Path, damaged: Callable[[str], None]) -> Iterator[dict[str, Json]]:
    """Yield every whole line. `damaged` is told `FILE:N` for a broken one; a missing file is empty.

    Raises OSError when the file is there and cannot be read.
    """
    for number, line in lines(path):
        value = parse(line)
        if value is None:
            damaged(f"{path}:{number}")
        else:
            yield value


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield every line that ends, unread, with its number from 1; a missing file is empty. Raises OSError."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):  # else it is being written, or was torn by a crash
                yield number, line


def parse(line: bytes) -> dict[str, Json] | None:
    """Return what a line says, None when it is broken."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
