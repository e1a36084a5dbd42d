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
from aj.store.atomic import FILE_MODE, cannot_write

BLOCK = 1 << 16  # how far back one look for the last newline reaches


def append(path: Path, value: Mapping[str, Json]) -> None:
    """Append one line and make it durable. The caller holds the lock of this file.

    Raises AjError naming the path; the file is then as it was before.
    """
    line = json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        end = _end_of_last_line(handle)
        os.ftruncate(handle, end)
        try:
            _write_all(handle, line, end)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, end)
            raise
        os.fchmod(handle, FILE_MODE)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(handle, data, offset)
        data, offset = data[written:], offset + written


def _end_of_last_line(handle: int) -> int:
    """Return the size of the file up to and with its last newline."""
    end = os.fstat(handle).st_size
    while end:
        start = max(0, end - BLOCK)
        at = os.pread(handle, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def read(path: Path, damaged: Callable[[str], None]) -> Iterator[dict[str, Json]]:
    """Yield every whole line. `damaged` is told `FILE:N` for a broken one; a missing file is empty."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return
    *lines, _tail = raw.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            yield value
        else:
            damaged(f"{path}:{number}")
