"""An HTTP server on 127.0.0.1 that remembers each request, and on order cuts, stalls or answers something else."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Got:
    """One request as it arrived. Header names are lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes

    @property
    def target(self) -> str:
        return f"{self.method} {self.path}"

    def value(self, name: str) -> str | None:
        """The value of a query name."""
        return dict(self.query).get(name)

    def json(self) -> object:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What is answered: JSON when there is a document, else bytes."""

    status: int = 200
    document: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes = b""

    @property
    def body(self) -> bytes:
        return self.raw if self.document is None else json.dumps(self.document).encode()


class Cut(Enum):
    """Where a connection breaks."""

    AFTER_HEADERS = "the head was read, the body was not"
    AFTER_BODY = "all was read, nothing answered"
    MID_ANSWER = "half of the answer was sent"


class Stall(Enum):
    """Where the server falls silent until it is closed."""

    BEFORE_ANSWER = "all was read, nothing answered"
    MID_ANSWER = "half of the answer was sent"


Fault = Answer | Cut | Stall


def problem(status: int, code: str, message: str, *details: str, headers: Mapping[str, str] | None = None) -> Answer:
    """An error as Azure answers it."""
    error: dict[str, object] = {"code": code, "message": message}
    if details:
        error["details"] = [{"code": code, "message": words} for words in details]
    return Answer(status, {"error": error}, {"x-ms-request-id": f"request-{status}", **(headers or {})})


@dataclass
class Script:
    """What happens next to requests whose `METHOD /path` holds some words."""

    words: str
    faults: list[Fault]


class Loopback(socketserver.ThreadingTCPServer):
    """The server. `answer` is asked for each request that no script takes."""

    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, answer: Callable[[Got], Answer], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.got: list[Got] = []
        self.errors: list[str] = []
        self.connections = 0
        self.hangs_up = False  # on whoever calls, before a word
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._scripts: list[Script] = []
        self._open: set[socket.socket] = set()
        self._tls = tls
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def netloc(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self.netloc}"

    def on(self, words: str, *faults: Fault) -> None:
        """Let the next requests that hold these words end so, one after the other."""
        with self.lock:
            self._scripts.append(Script(words, list(faults)))

    def take(self, target: str) -> Fault | None:
        with self.lock:
            for script in self._scripts:
                if script.words in target and script.faults:
                    return script.faults.pop(0)
        return None

    def left(self) -> list[str]:
        """Scripts that nothing has used up."""
        with self.lock:
            return [script.words for script in self._scripts if script.faults]

    def targets(self) -> list[str]:
        """`METHOD /path` of each request, in order."""
        with self.lock:
            return [got.target for got in self.got]

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        with self.lock:
            self._open.add(connection)
            self.connections += 1
        return connection, address

    def finish_request(self, request: socket.socket, client_address: object) -> None:
        if self.hangs_up:
            return
        if self._tls is not None:
            try:
                request = self._tls.wrap_socket(request, server_side=True)
            except (OSError, ssl.SSLError):
                return  # whoever called does not trust us
            with self.lock:
                self._open.add(request)
        try:
            self.RequestHandlerClass(request, client_address, self)
        finally:
            request.close()

    def handle_error(self, request: object, client_address: object) -> None:
        import sys
        import traceback

        if not isinstance(sys.exception(), OSError):  # a caller that hangs up is no error of ours
            self.errors.append(traceback.format_exc())

    def close(self) -> None:
        """Hang up everything and stop."""
        self.closing.set()
        self.shutdown()
        self._thread.join()
        with self.lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()
        for connection in connections:
            connection.close()


@contextlib.contextmanager
def serving(answer: Callable[[Got], Answer], tls: ssl.SSLContext | None = None) -> Iterator[Loopback]:
    """Serve for the length of a block. A fault inside the server fails the block."""
    server = Loopback(answer, tls)
    try:
        yield server
    finally:
        server.close()
    if server.errors:
        raise AssertionError("\n".join(server.errors))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Loopback

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        fault = self.server.take(f"{self.command} {parts.path}")
        if fault is Cut.AFTER_HEADERS:
            self._cut()
            return
        got = Got(
            self.command,
            parts.path,
            tuple(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )
        with self.server.lock:
            self.server.got.append(got)
        answer = fault if isinstance(fault, Answer) else self.server.answer(got)
        self._give(answer, fault)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = handle_any

    def _give(self, answer: Answer, fault: Fault | None) -> None:
        if fault is Stall.BEFORE_ANSWER:
            self.server.closing.wait(30)
        if fault in (Cut.AFTER_BODY, Stall.BEFORE_ANSWER):
            self._cut()
            return
        body = answer.body
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.document is not None and "Content-Type" not in answer.headers:
            self.send_header("Content-Type", "application/json")
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault in (Cut.MID_ANSWER, Stall.MID_ANSWER):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if fault is Stall.MID_ANSWER:
                self.server.closing.wait(30)
            self._cut()
            return
        if self.command != "HEAD" and answer.status not in (204, 304):
            self.wfile.write(body)

    def _cut(self) -> None:
        """Break the connection at once, so that the caller notices."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, *words: object) -> None:
        """Say nothing: what happened is in `got`."""
