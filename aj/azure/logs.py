"""Log files of a run: which comes first, and a page of one at a time, by a signed address.

A signed address is a secret that goes with no token. A log may grow between two pages, or be replaced
by a new one: then the reader is told to begin anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from aj.azure.times import moment
from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.net import http
from aj.net.http import Request, Response, Transport

PAGE = 1024 * 1024  # bytes; what a terminal or a socket takes at once
EARLY_S = 300.0  # an address is not used in its last five minutes
PREFIXES = ("user_logs/", "logs/", "azureml-logs/", "system_logs/")
_ORDER = (
    re.compile(r"user_logs/std_log_process_0*\.|user_logs/std_log_process_0*\Z"),
    re.compile(r"user_logs/std_log"),
    re.compile(r"user_logs/"),
    re.compile(r"logs/"),
    re.compile(r"azureml-logs/70_"),
    re.compile(r"azureml-logs/"),
    re.compile(r"(?!system_logs/)"),
)
_RANGE = re.compile(r"bytes (?P<start>[0-9]+)-(?P<end>[0-9]+)/(?P<total>[0-9]+)\Z", re.ASCII)
_TOTAL = re.compile(r"bytes \*/(?P<total>[0-9]+)\Z", re.ASCII)
_NUMBERS = re.compile(r"([0-9]+)")


@dataclass(frozen=True)
class Cursor:
    """Where to go on in a file: the next byte, and which file it was (its tag, and its size then)."""

    path: str
    offset: int = 0
    etag: str | None = None
    size: int = 0


@dataclass(frozen=True)
class Page:
    """Some bytes of a file, and where to go on. `was_reset` when the file was replaced: begin anew at `cursor`."""

    data: bytes
    cursor: Cursor
    was_reset: bool = False


def ordered(paths: Iterable[str]) -> list[str]:
    """Sort log files, what a user wants first: the first process, the others, then the service's own."""
    return sorted(paths, key=_rank)


def expires_at(url: str) -> float | None:
    """Return the moment from which a signed address is not used any more; None when it names none."""
    named = parse_qs(urlsplit(url).query).get("se")
    end = moment(named[0]) if named else None
    return None if end is None else end - EARLY_S


def read(transport: Transport, url: str, cursor: Cursor, *, size: int = PAGE) -> Page:
    """Read the next page of a file. Raises AuthError or Refused when the address has expired, NotFound."""
    wanted = min(size, PAGE)
    answer = _get(transport, url, cursor.path, f"bytes={cursor.offset}-{cursor.offset + wanted - 1}")
    etag = answer.header("etag")
    if answer.status == 416:
        return _past_the_end(answer, cursor)
    if answer.status == 206:
        start, total = _range(answer, cursor.path)
        data = answer.body[:wanted]
        if start != cursor.offset:
            raise _odd(cursor.path, f"it begins at byte {start}, not {cursor.offset}")
    else:
        total = len(answer.body)
        data = answer.body[cursor.offset : cursor.offset + wanted]
    if cursor.offset > total or (etag != cursor.etag and total < cursor.size):
        return _reset(cursor)
    data = _whole_characters(data)
    return Page(data, Cursor(cursor.path, cursor.offset + len(data), etag, total))


def tail(transport: Transport, url: str, path: str, *, size: int = PAGE) -> Page:
    """Read the last bytes of a file. Raises as `read`."""
    wanted = min(size, PAGE)
    answer = _get(transport, url, path, f"bytes=-{wanted}")
    if answer.status == 416:  # an empty file has no last bytes
        return Page(b"", Cursor(path, 0, answer.header("etag")))
    if answer.status == 206:
        start, total = _range(answer, path)
    else:
        total = len(answer.body)
        start = max(0, total - wanted)
    data = answer.body if answer.status == 206 else answer.body[start:]
    data = _whole_characters(data)
    return Page(data, Cursor(path, start + len(data), answer.header("etag"), total))


def _get(transport: Transport, url: str, path: str, wanted: str) -> Response:
    headers = {"Range": wanted, "Accept": "*/*", "Accept-Encoding": "identity"}
    return transport.ask(
        Request("GET", url, f"read {path}", headers=headers, limit=http.BLOB, resource=path, expects=(416,))
    )


def _range(answer: Response, path: str) -> tuple[int, int]:
    found = _RANGE.match(answer.header("content-range") or "")
    if not found or int(found["end"]) - int(found["start"]) + 1 != len(answer.body):
        raise _odd(path, "its range is not told rightly")
    return int(found["start"]), int(found["total"])


def _past_the_end(answer: Response, cursor: Cursor) -> Page:
    found = _TOTAL.match(answer.header("content-range") or "")
    total = int(found["total"]) if found else cursor.offset  # a service that does not tell has nothing new
    if cursor.offset > total:
        return _reset(cursor)
    if cursor.offset < total:
        raise _odd(cursor.path, f"byte {cursor.offset} of {total} was refused")
    return Page(b"", replace(cursor, etag=answer.header("etag") or cursor.etag, size=total))


def _reset(cursor: Cursor) -> Page:
    return Page(b"", Cursor(cursor.path), was_reset=True)


def _whole_characters(data: bytes) -> bytes:
    """Leave a character that the page cuts through to the next one, unless nothing else is there."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue  # in the middle of one
        due = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] or data if back < due else data
    return data


def _rank(path: str) -> tuple[int, list[tuple[int, int, str]]]:
    group = next((number for number, form in enumerate(_ORDER) if form.match(path)), len(_ORDER))
    parts = _NUMBERS.split(path)
    return group, [(0, int(part), "") if _NUMBERS.fullmatch(part) else (1, 0, part) for part in parts]


def _odd(path: str, problem: str) -> RemoteError:
    return RemoteError(f"could not read {path}: {problem}", code="bad-answer")
