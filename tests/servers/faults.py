"""A TCP relay on loopback in front of a real server: it cuts, stalls or slows a connection at a chosen byte."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

PIECE = 16 * 1024
BUFFER = 64 * 1024  # of the system, kept small: what it holds back looks as if it had arrived


class Way(Enum):
    """The two directions."""

    UP = "to the server"
    DOWN = "to the client"


class End(Enum):
    """What happens at the byte."""

    CUT = "the connection breaks"
    STALL = "nothing moves any more"
    SLOW = "each piece takes its time"


@dataclass
class Fault:
    """What happens `after` so many bytes `way`, counted from a request whose head holds `words`, `times` times."""

    words: bytes
    way: Way
    after: int
    end: End
    times: int = 1
    pause_s: float = 0.0
    hits: int = 0
    reached: threading.Event = field(default_factory=threading.Event)


@dataclass
class _Line:
    """One connection: both its sockets, and the fault that waits for a byte of it."""

    client: socket.socket
    server: socket.socket
    armed: Fault | None = None
    passed: dict[Way, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Relay:
    """The relay. Each fault strikes as often as it says; other connections pass untouched."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=32)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self._start(self._accept)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def on(
        self, words: str, end: End, *, way: Way = Way.UP, after: int = 0, times: int = 1, pause_s: float = 0.0
    ) -> Fault:
        """Let the next requests whose head holds these words end so."""
        fault = Fault(words.encode(), way, after, end, times, pause_s)
        with self._lock:
            self._faults.append(fault)
        return fault

    def count(self, *words: str) -> int:
        """How many requests had all these words in their head."""
        with self._lock:
            return sum(all(word.encode() in head for word in words) for head in self.heads)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(self._target)
            line = _Line(client, server)
            with self._lock:
                self._open += [client, server]
            self._start(self._carry, line, Way.UP)
            self._start(self._carry, line, Way.DOWN)

    def _carry(self, line: _Line, way: Way) -> None:
        source, target = (line.client, line.server) if way is Way.UP else (line.server, line.client)
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE):
                if way is Way.UP:
                    self._look(line, piece)
                if not self._pass(line, way, piece, target):
                    return
            target.shutdown(socket.SHUT_WR)

    def _look(self, line: _Line, piece: bytes) -> None:
        """Notice the head of a request, and arm the fault that waits for it."""
        if not piece.startswith((b"PUT ", b"GET ", b"HEAD ", b"DELETE ")):
            return
        head = piece.partition(b"\r\n\r\n")[0]
        with self._lock:
            self.heads.append(head)
            line.armed, line.passed = None, dict.fromkeys(Way, 0)
            for fault in self._faults:
                if fault.words in head and fault.hits < fault.times:
                    fault.hits += 1
                    line.armed = fault
                    return

    def _pass(self, line: _Line, way: Way, piece: bytes, target: socket.socket) -> bool:
        fault = line.armed
        if fault is None or fault.way is not way:
            target.sendall(piece)
            return True
        if fault.end is End.SLOW:
            self._closing.wait(fault.pause_s)
            target.sendall(piece)
            return True
        room = max(0, fault.after - line.passed[way])
        target.sendall(piece[:room])
        line.passed[way] += len(piece[:room])
        if len(piece) <= room:
            return True
        if fault.end is End.STALL:
            fault.reached.set()
            self._closing.wait()
        _break(line.client)
        _break(line.server)
        fault.reached.set()
        return False

    def _start(self, act: object, *arguments: object) -> None:
        assert callable(act)
        thread = threading.Thread(target=act, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Hang up everything."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._open:
            one.close()


def _break(one: socket.socket) -> None:
    """Break a connection, so that the other side notices at once."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextlib.contextmanager
def relaying(url: str) -> Iterator[Relay]:
    """Relay to an address `http://HOST:PORT` for the length of a block."""
    host, _, port = url.removeprefix("http://").partition(":")
    relay = Relay(host, int(port))
    try:
        yield relay
    finally:
        relay.close()
