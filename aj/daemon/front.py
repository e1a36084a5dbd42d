"""The strict front of the socket: raw bytes to a Request, a Reply to raw bytes.

Only what is meant is let through: HTTP/1.1, whole lines, one decimal Content-Length, no encodings of
the transfer, bounded head and body. Everything else is refused with its exact status, and the
connection is closed after it, since nobody can know where the next request would begin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from aj.base.noun import dataclass
from aj.model.json import Json
from aj.wire import paths
from aj.wire.errors import Malformed

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[\x21-\x22\x24-\x7e]*) HTTP/([0-9])\.([0-9])\r\n")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*\r\n")
_LENGTH = re.compile(r"[0-9]{1,15}\Z", re.ASCII)

ALIVE = b"HTTP/1.1 100 Continue\r\n\r\n"  # may precede any answer: a client passes over it
REASONS = {
    200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 411: "Length Required", 413: "Content Too Large",
    417: "Expectation Failed", 422: "Unprocessable Content", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}  # fmt: skip


class Reader(Protocol):
    """What is read from: a buffered binary file."""

    def readline(self, size: int = -1, /) -> bytes: ...

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class Request:
    """One whole request. Path and query are raw; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    closes: bool


@dataclass(frozen=True)
class Reply:
    """One whole answer: a status and a JSON document."""

    status: int
    document: Json
    headers: Mapping[str, str] = field(default_factory=dict)


def read(stream: Reader) -> Request | None:
    """Read one request; None when the other side hung up before it. Raises Malformed with its status."""
    first = stream.readline(paths.MAX_HEAD_BYTES + 1)
    if not first:
        return None
    method, target = _request_line(first)
    headers = _headers(stream, paths.MAX_HEAD_BYTES - len(first))
    if len(headers.get("host", ())) != 1:
        raise Malformed("exactly one Host header is due")
    if "expect" in headers:
        raise Malformed("Expect is not supported", status=417)
    length = _length(method, headers)
    body = stream.read(length) if length else b""
    if len(body) < length:
        raise Malformed(f"the body ended after {len(body)} of {length} bytes")
    path, _, query = target.partition("?")
    joined = {name: ", ".join(values) for name, values in headers.items()}
    return Request(method, path, query, joined, body, "close" in joined.get("connection", "").lower())


def _request_line(line: bytes) -> tuple[str, str]:
    if len(line) > paths.MAX_HEAD_BYTES:
        raise Malformed(f"the head is longer than {paths.MAX_HEAD_BYTES} bytes", status=431)
    found = _REQUEST_LINE.fullmatch(line)
    if not found:
        raise Malformed("not an HTTP/1.1 request line")
    if (found[3], found[4]) != (b"1", b"1"):
        raise Malformed("only HTTP/1.1 is spoken here", status=505)
    return found[1].decode(), found[2].decode()


def _headers(stream: Reader, left: int) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    while True:
        line = stream.readline(left + 1)
        left -= len(line)
        if left < 0:
            raise Malformed(f"the head is longer than {paths.MAX_HEAD_BYTES} bytes", status=431)
        if line == b"\r\n":
            return headers
        found = _HEADER.fullmatch(line)
        if not found:
            raise Malformed("not a header line" if line.endswith(b"\n") else "the head ended too early")
        headers.setdefault(found[1].decode().lower(), []).append(found[2].decode("latin-1"))


def _length(method: str, headers: Mapping[str, list[str]]) -> int:
    """Return the length of the body, from exactly one plain decimal number."""
    given = headers.get("content-length", [])
    if "transfer-encoding" in headers:
        status = 400 if given else 411
        raise Malformed("Transfer-Encoding is not supported: send a Content-Length", status=status)
    if not given:
        if method in ("GET", "HEAD", "DELETE"):
            return 0
        raise Malformed("a Content-Length is due", status=411)
    if len(given) != 1 or not _LENGTH.match(given[0]):
        raise Malformed("exactly one decimal Content-Length is due")
    length = int(given[0])
    if length > paths.MAX_BODY_BYTES:
        raise Malformed(f"the body has {length} bytes, the limit is {paths.MAX_BODY_BYTES}", status=413)
    return length


def encode(reply: Reply, request_id: str, *, closes: bool) -> bytes:
    """Write an answer as one piece of bytes. Lone surrogates (odd file names) survive as escapes."""
    body = json.dumps(reply.document, separators=(",", ":")).encode("ascii") + b"\n"
    return _head(reply.status, request_id, {**reply.headers, "Content-Length": str(len(body))}, closes) + body


def encode_stream_head(request_id: str) -> bytes:
    """Write the head of an answer that goes on until the connection is closed."""
    return _head(200, request_id, {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}, True)


def _head(status: int, request_id: str, headers: Mapping[str, str], closes: bool) -> bytes:
    lines = {"Content-Type": "application/json", paths.REQUEST: request_id, **headers}
    if closes:
        lines["Connection"] = "close"
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n{head}\r\n".encode("latin-1")
