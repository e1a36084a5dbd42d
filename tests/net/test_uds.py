"""HTTP over a Unix socket: what arrives, and exactly how far it got when it does not."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aj.net import uds
from aj.net.uds import Lost, Nonsense, NotSent, Silent, Wire
from tests.conftest import Home

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Script = Callable[["Scripted", socket.socket], object]


class Scripted:
    """A listener that does with each connection what the test says."""

    def __init__(self, path: Path, script: Script) -> None:
        self.path = path
        self.requests: list[bytes] = []
        self._script = script
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.fspath(path))
        os.chmod(path, 0o600)
        self._listener.listen()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            with line:
                self._script(self, line)

    def take(self, line: socket.socket) -> bytes:
        found = b""
        while b"\r\n\r\n" not in found:
            piece = line.recv(1 << 16)
            if not piece:
                break
            found += piece
        length = re.search(rb"Content-Length: (\d+)", found)
        missing = int(length[1]) - len(found.partition(b"\r\n\r\n")[2]) if length else 0
        while missing > 0 and (piece := line.recv(missing)):
            found, missing = found + piece, missing - len(piece)
        self.requests.append(found)
        return found

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


@pytest.fixture
def listening(home: Home) -> Iterator[Callable[[Script], Scripted]]:
    home.folders.runtime.mkdir(mode=0o700)
    made: list[Scripted] = []

    def listen(script: Script) -> Scripted:
        made.append(Scripted(home.folders.runtime / "s", script))
        return made[-1]

    yield listen
    for one in made:
        one.close()


Listen = Callable[[Script], Scripted]


def answering(*answers: bytes) -> Script:
    def script(server: Scripted, line: socket.socket) -> None:
        for answer in answers:
            if not server.take(line):
                return
            line.sendall(answer)

    return script


def test_a_read_keeps_its_connection(listening: Listen) -> None:
    server = listening(answering(OK, OK, OK))
    wire = Wire(server.path)
    for _ in range(3):
        assert wire.read("/a", {"X-Y": "z"}, silence_s=5).body == b"ok"
    assert len(server.requests) == 3
    assert b"GET /a HTTP/1.1\r\n" in server.requests[0] and b"X-Y: z" in server.requests[0]
    wire.close()


def test_a_read_is_asked_once_more_when_the_kept_connection_was_closed(listening: Listen) -> None:
    server = listening(answering(OK))  # each connection is closed after one answer
    wire = Wire(server.path)
    assert [wire.read("/a", {}, silence_s=5).status for _ in range(3)] == [200, 200, 200]
    wire.close()


@pytest.mark.rule("C-210")
def test_a_change_has_a_connection_of_its_own_and_is_sent_once(listening: Listen) -> None:
    server = listening(answering(OK))
    wire = Wire(server.path)
    wire.read("/a", {}, silence_s=5)
    assert wire.change("POST", "/b", {}, b"{}", silence_s=5).status == 200
    assert [request.split(b" ")[0] for request in server.requests] == [b"GET", b"POST"]
    wire.close()


@pytest.mark.rule("C-210")
def test_a_lost_answer_is_told_and_not_asked_for_again(listening: Listen) -> None:
    server = listening(lambda server, line: server.take(line))
    with pytest.raises(Lost):
        Wire(server.path).change("POST", "/b", {}, b"{}", silence_s=5)
    assert len(server.requests) == 1


def test_half_an_answer_is_lost_too(listening: Listen) -> None:
    server = listening(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"))
    with pytest.raises(Lost):
        Wire(server.path).change("POST", "/b", {}, b"{}", silence_s=5)


@pytest.mark.rule("C-210")
def test_silence_has_an_end(listening: Listen) -> None:
    go = threading.Event()
    server = listening(lambda server, line: (server.take(line), go.wait(10)))
    with pytest.raises(Silent):
        Wire(server.path).read("/a", {}, silence_s=0.1)
    go.set()


@pytest.mark.rule("C-210")
def test_signs_of_life_are_passed_over_and_keep_the_silence_away(listening: Listen) -> None:
    def script(server: Scripted, line: socket.socket) -> None:
        server.take(line)
        for _ in range(4):
            line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            threading.Event().wait(0.15)
        line.sendall(OK)

    assert Wire(listening(script).path).change("POST", "/b", {}, b"{}", silence_s=0.4).body == b"ok"


@pytest.mark.rule("C-286")
@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9\r\n", b"\0\1\2\3\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_not_http_is_nonsense(listening: Listen, answer: bytes) -> None:
    with pytest.raises(Nonsense):
        Wire(listening(answering(answer)).path).read("/a", {}, silence_s=5)


def test_a_word_of_refusal_is_read_though_the_request_was_not_taken(listening: Listen) -> None:
    full = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nfull"
    server = listening(lambda _, line: line.sendall(full))
    answer = Wire(server.path).change("POST", "/b", {}, b"x" * 4_000_000, silence_s=5)
    assert (answer.status, answer.body) == (503, b"full")


def test_a_request_that_was_not_taken_whole_did_nothing(listening: Listen) -> None:
    server = listening(lambda *_: None)
    with pytest.raises(NotSent):
        Wire(server.path).change("POST", "/b", {}, b"x" * 4_000_000, silence_s=5)


def test_nobody_there_is_told_as_such(home: Home) -> None:
    home.folders.runtime.mkdir(mode=0o700)
    path = home.folders.runtime / "s"
    with pytest.raises(NotSent) as error:
        Wire(path).read("/a", {}, silence_s=5)
    assert error.value.absent
    left = socket.socket(socket.AF_UNIX)
    left.bind(os.fspath(path))
    os.chmod(path, 0o600)
    left.close()
    with pytest.raises(NotSent) as error:
        Wire(path).read("/a", {}, silence_s=5)
    assert error.value.absent


@pytest.mark.rule("C-198", "C-286")
def test_a_socket_that_is_not_ours_alone_is_not_used(listening: Listen, home: Home) -> None:
    server = listening(answering(OK))
    os.chmod(server.path, 0o666)
    with pytest.raises(Nonsense, match="0666"):
        Wire(server.path).read("/a", {}, silence_s=5)
    plain = home.folders.runtime / "file"
    plain.write_text("x")
    with pytest.raises(Nonsense, match="not a socket"):
        Wire(plain).read("/a", {}, silence_s=5)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a socket to somebody else")
def test_a_socket_of_somebody_else_is_not_used(listening: Listen) -> None:
    server = listening(answering(OK))
    os.chown(server.path, 65534, 65534)
    with pytest.raises(Nonsense, match="65534"):
        Wire(server.path).read("/a", {}, silence_s=5)


def test_the_other_end_is_known_by_its_user(listening: Listen) -> None:
    server = listening(answering(OK))
    with uds.dial(server.path) as line:
        assert uds.peer_uid(line) == os.getuid()


def test_a_stream_gives_lines_as_they_come(listening: Listen) -> None:
    def script(server: Scripted, line: socket.socket) -> None:
        server.take(line)
        line.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for word in (b"one\n", b"tw", b"o\n", b"three"):
            line.sendall(word)

    stream = Wire(listening(script).path).stream("/a", {}, silence_s=5)
    assert list(stream.lines()) == [b"one\n", b"two\n", b"three"]
    stream.close()


def test_a_stream_without_a_sign_of_life_is_silent(listening: Listen) -> None:
    go = threading.Event()

    def script(server: Scripted, line: socket.socket) -> None:
        server.take(line)
        line.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfirst\n")
        go.wait(10)

    stream = Wire(listening(script).path).stream("/a", {}, silence_s=0.1)
    lines = stream.lines()
    assert next(lines) == b"first\n"
    with pytest.raises(Silent):
        next(lines)
    go.set()
    stream.close()
