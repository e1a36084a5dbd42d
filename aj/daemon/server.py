"""The socket's server: who may connect and how many, a thread for each connection, its requests one by one."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer

from aj.base.clock import Clock
from aj.base.errors import DaemonError
from aj.daemon import front, router
from aj.daemon.call import Streaming
from aj.daemon.log import Log
from aj.daemon.router import Router
from aj.daemon.stream import HungUp, Line
from aj.net import uds
from aj.wire import paths
from aj.wire.errors import Malformed

RECOVER_S = 0.2  # pause when the system cannot give another connection, such as for want of file handles
LINGER_S = 2.0  # how long a refused sender is still listened to, so that it sees the refusal
LINGER_BYTES = 4 * paths.MAX_BODY_BYTES


class Server(ThreadingMixIn, UnixStreamServer):
    """Accepts connections of this user, each in a thread, up to a limit."""

    daemon_threads = True
    block_on_close = False
    keepalive_s = paths.KEEPALIVE_S

    def __init__(self, listener: socket.socket, answer: Router, clock: Clock, log: Log) -> None:
        super().__init__(listener.getsockname(), Connection, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.router = answer
        self.clock = clock
        self.log = log
        self._is_shut = threading.Event()
        self._counting = threading.Lock()
        self.connections = 0

    def accept_until_shut(self) -> None:
        """Accept until `shut` is called, and then what had arrived before."""
        while True:
            try:
                connection, address = self.get_request()
            except OSError as error:
                if self._is_shut.is_set():
                    return
                self.log.error(f"cannot accept a connection: {error.strerror}")
                self.clock.wait(self._is_shut, RECOVER_S)
                continue
            if self._is_ours(connection):
                self._take(connection, address)
            else:
                connection.close()

    def shut(self) -> None:
        """Let nobody connect any more."""
        self._is_shut.set()
        try:
            self.socket.shutdown(socket.SHUT_RD)
        except OSError:
            self.socket.close()  # systems that do not know a half-closed listener

    def _is_ours(self, connection: socket.socket) -> bool:
        try:
            user = uds.peer_uid(connection)
        except OSError as error:
            self.log.warning(f"a connection of nobody knows whom: {error}")
            return False
        if user != os.getuid():
            self.log.warning(f"user {user} tried to connect")
        return user == os.getuid()

    def _enter(self) -> bool:
        """Count one more connection, if there is a place for it."""
        with self._counting:
            has_place = self.connections < paths.MAX_CONNECTIONS
            self.connections += has_place
        return has_place

    def _leave(self) -> None:
        with self._counting:
            self.connections -= 1

    def _take(self, connection: socket.socket, address: object) -> None:
        if not self._enter():
            full = DaemonError(f"{paths.MAX_CONNECTIONS} connections are open", code="busy", hint="try again")
            with contextlib.suppress(OSError):
                connection.settimeout(0)
                connection.sendall(front.encode(router.refusal(full), "-", closes=True))
            connection.close()
            return
        try:
            self.process_request(connection, address)
        except RuntimeError as error:  # the system gives no more threads
            self._leave()
            connection.close()
            self.log.error(f"cannot serve a connection: {error}")

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Serve one connection, then free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what a connection died of."""
        error = sys.exc_info()[1]
        self.log.error(f"a connection broke: {type(error).__name__}: {error}", error)


class Connection(StreamRequestHandler):
    """One connection: requests one after the other, until one of both hangs up."""

    server: Server
    timeout = paths.IDLE_CONNECTION_S

    def handle(self) -> None:
        """Serve requests until the connection ends."""
        with contextlib.suppress(HungUp, OSError):
            while self._serve_one():
                pass

    def _serve_one(self) -> bool:
        """Serve one request; whether another may follow."""
        try:
            request = front.read(self.rfile)
        except Malformed as error:
            self._refuse(error)
            return False
        if request is None:
            return False
        number = router.request_id(request.headers)
        answer = self.server.router.answer(request, self._line(), number)
        if isinstance(answer, Streaming):
            self._stream(answer, number)
            return False
        self._send(front.encode(answer, number, closes=request.closes))
        return not request.closes

    def _line(self) -> Line:
        return Line(self._send, self.server.clock, keepalive_s=self.server.keepalive_s)

    def _stream(self, answer: Streaming, number: str) -> None:
        try:
            with contextlib.closing(answer.pieces), self.server.router.gate.inside():
                self._send(front.encode_stream_head(number))
                for piece in answer.pieces:
                    self._send(piece)
        except DaemonError as error:  # it began to leave between the question and the stream
            self._send(front.encode(router.refusal(error), number, closes=True))

    def _send(self, data: bytes) -> None:
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise HungUp(str(error)) from error

    def _refuse(self, error: Malformed) -> None:
        """Say what is wrong with the frame, then listen a while so that a busy sender sees it."""
        self._send(front.encode(router.refusal(error), "-", closes=True))
        self.connection.shutdown(socket.SHUT_WR)
        limit, left = self.server.clock.monotonic() + LINGER_S, LINGER_BYTES
        self.connection.settimeout(LINGER_S)
        while left > 0 and self.server.clock.monotonic() < limit:
            found = self.connection.recv(1 << 16)
            if not found:
                return
            left -= len(found)


def bind(path: Path) -> tuple[socket.socket, Path]:
    """Listen at a name beside the socket's path, 0600; the caller renames it. Raises DaemonError."""
    beside = path.with_suffix(".new")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        beside.unlink(missing_ok=True)
        listener.bind(os.fsencode(beside))
        os.chmod(beside, 0o600)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise DaemonError(f"cannot listen at {path}: {error.strerror}", code="cannot-listen") from error
    return listener, beside
