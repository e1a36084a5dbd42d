"""The stream of an exec, as an API server speaks it over a WebSocket: numbered channels, and a status at the end."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of the handshake (RFC 6455)
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
TEXT, BINARY, HANGUP, PING, PONG = 1, 2, 8, 9, 10
PIECE = 32 * 1024  # the server's own reads are of this size


@dataclass
class Turn:
    """What happens to one exec instead of its quiet end: at a number of bytes of stdin or of output.

    `cut` breaks the connection there, else the stream stalls until `release` is set. `kills` ends the command, too;
    without it the command lives on with its input closed, as it does under a real runtime.
    """

    after_stdin: int | None = None
    after_stdout: int | None = None
    cut: bool = True
    kills: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


@dataclass
class Exec:
    """One exec that was asked for, and what came of it."""

    namespace: str
    pod: str
    container: str
    command: tuple[str, ...]
    protocol: str
    stdin: bytearray = field(default_factory=bytearray)
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    code: int | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def everything(self) -> bytes:
        return b"\n".join([*(word.encode() for word in self.command), self.stdin, self.stdout, self.stderr])


class Broken(ConnectionError):
    """The other side is gone."""


class Socket:
    """The frames of a WebSocket, seen from the server."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._lock = threading.Lock()

    def read(self) -> tuple[int, bytes]:
        """Read one message, put together from its frames. Raises Broken."""
        whole, kind = b"", 0
        while True:
            first, second = self._exactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._exactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._exactly(8))
            if not second & 0x80:
                raise Broken("a frame without its mask")
            mask = self._exactly(4)
            part = _masked(self._exactly(size), mask)
            opcode = first & 0x0F
            if opcode >= HANGUP:
                if opcode == PING:
                    self.send(PONG, part)
                    continue
                return opcode, part
            kind, whole = kind or opcode, whole + part
            if first & 0x80:
                return kind, whole

    def send(self, kind: int, data: bytes) -> None:
        size = len(data)
        head = bytes([0x80 | kind])
        if size < 126:
            head += bytes([size])
        elif size < 65536:
            head += struct.pack(">BH", 126, size)
        else:
            head += struct.pack(">BQ", 127, size)
        with self._lock:
            try:
                self.connection.sendall(head + data)
            except OSError:
                raise Broken from None

    def shut(self) -> None:
        """Take and give nothing more."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def cut(self) -> None:
        """Break the connection so that the other side notices at once."""
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RDWR)

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                piece = self.connection.recv(min(size - len(found), 1 << 20))
            except OSError:
                raise Broken from None
            if not piece:
                raise Broken
            found += piece
        return bytes(found)


def _masked(data: bytes, mask: bytes) -> bytes:
    if not data:
        return data
    times = -(-len(data) // 4)
    whole = int.from_bytes(data, "big") ^ (int.from_bytes(mask * times, "big") >> 8 * (times * 4 - len(data)))
    return whole.to_bytes(len(data), "big")


def accept(key: str) -> str:
    """What proves that the handshake was understood."""
    return base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()


def chosen(offered: str) -> str | None:
    """The protocol that is spoken: the first of the caller's that is known."""
    return next((one.strip() for one in offered.split(",") if one.strip() in PROTOCOLS), None)


def status(code: int | None, command: Sequence[str]) -> dict:
    """What the last channel says: how the command ended."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    if code is None:
        words = "error executing command in container: the container is gone"
        return {"metadata": {}, "status": "Failure", "message": words, "reason": "InternalError", "code": 500}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    words = f"command terminated with non-zero exit code: exit status {code}"
    failure = {"metadata": {}, "status": "Failure", "message": words, "reason": "NonZeroExitCode"}
    return {**failure, "details": {"causes": causes}}


def serve(
    line: Socket, one: Exec, start: Callable[[], subprocess.Popen[bytes]], wants: frozenset[str], turn: Turn | None
) -> None:
    """Carry one exec between the caller and a real command until one of them ends."""
    try:
        child = start()
    except OSError as error:
        _end(line, {"status": "Failure", "message": str(error), "reason": "InternalError", "code": 500})
        return
    feeder = threading.Thread(target=_feed, args=(line, one, child, "stdin" in wants, turn), daemon=True)
    try:
        for channel in (STDIN, STDOUT, STDERR):  # the server opens each channel with an empty message
            line.send(BINARY, bytes([channel]))
        feeder.start()
        is_heard = _tell(line, one, child, wants, turn)
        one.code = child.wait()
        code = one.code if one.code >= 0 else 128 - one.code
        if is_heard:
            _end(line, status(code, one.command))
        line.shut()
    finally:
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if feeder.ident is not None:
            feeder.join(10)
        one.ended.set()


def _end(line: Socket, said: dict) -> None:
    with contextlib.suppress(Broken):
        line.send(BINARY, bytes([STATUS]) + json.dumps(said).encode())
        line.send(HANGUP, struct.pack(">H", 1000))


def _feed(line: Socket, one: Exec, child: subprocess.Popen[bytes], is_wanted: bool, turn: Turn | None) -> None:
    """Carry what the caller sends to the command."""
    assert child.stdin is not None
    if not is_wanted:
        child.stdin.close()
    try:
        while True:
            kind, data = line.read()
            if kind == HANGUP:
                break
            if not data:
                continue
            channel, rest = data[0], data[1:]
            if channel == CLOSE and one.protocol == PROTOCOLS[0] and rest[:1] == bytes([STDIN]):
                child.stdin.close()
            elif channel == STDIN and is_wanted:
                _give(line, one, child, rest, turn)
    except (OSError, ValueError):
        pass
    with contextlib.suppress(OSError):
        child.stdin.close()


def _give(line: Socket, one: Exec, child: subprocess.Popen[bytes], data: bytes, turn: Turn | None) -> None:
    assert child.stdin is not None
    if turn is not None and turn.after_stdin is not None and len(one.stdin) + len(data) > turn.after_stdin:
        data = data[: max(0, turn.after_stdin - len(one.stdin))]
        one.stdin += data
        child.stdin.write(data)
        child.stdin.flush()
        _turn(line, child, turn)
        return
    one.stdin += data
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(data)
        child.stdin.flush()


def _turn(line: Socket, child: subprocess.Popen[bytes], turn: Turn) -> None:
    if turn.kills:
        kill(child)
    if not turn.cut:
        turn.reached.set()
        turn.release.wait(60)
    line.cut()
    turn.reached.set()
    raise Broken


def _tell(line: Socket, one: Exec, child: subprocess.Popen[bytes], wants: frozenset[str], turn: Turn | None) -> bool:
    """Carry what the command says to the caller, until it closes its output. Returns whether somebody listened."""
    assert child.stdout is not None and child.stderr is not None
    streams = {child.stdout.fileno(): (STDOUT, one.stdout), child.stderr.fileno(): (STDERR, one.stderr)}
    is_heard = True
    while streams:
        for ready in select.select(list(streams), [], [])[0]:
            piece = os.read(ready, PIECE)
            channel, kept = streams[ready]
            if not piece:
                del streams[ready]
                continue
            kept += piece
            word = "stdout" if channel == STDOUT else "stderr"
            if is_heard and word in wants:
                try:
                    _say(line, child, channel, piece, len(kept), turn)
                except Broken:
                    is_heard = False
    return is_heard


def _say(
    line: Socket, child: subprocess.Popen[bytes], channel: int, piece: bytes, so_far: int, turn: Turn | None
) -> None:
    if channel == STDOUT and turn is not None and turn.after_stdout is not None and so_far > turn.after_stdout:
        line.send(BINARY, bytes([channel]) + piece[: max(0, len(piece) - (so_far - turn.after_stdout))])
        _turn(line, child, turn)
    line.send(BINARY, bytes([channel]) + piece)


def kill(child: subprocess.Popen[bytes]) -> None:
    """End a command with everything it started."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
