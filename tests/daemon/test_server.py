"""The socket itself: who may connect, how many, what a frame must be, signs of life, events."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from pathlib import Path

import pytest

from aj.daemon import server
from aj.wire import paths
from tests.conftest import Home
from tests.daemon.inside import Inside
from tests.daemon.test_front import MALFORMED

LIMIT_S = 10
PING = b"GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.rule("C-207", "C-297")
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_frame_is_answered_and_the_connection_closed(inside: Inside, name: str) -> None:
    raw, status = MALFORMED[name]
    found = inside.exchange(raw if name.endswith("early") else raw + PING)
    assert found.startswith(b"HTTP/1.1 %d " % status)
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", found)) == 1, "nothing after it is taken for a request"
    assert b"Connection: close" in found
    assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["type"] == "UserError"


@pytest.mark.rule("C-207", "C-297")
def test_a_body_too_large_is_refused_before_it_is_read(inside: Inside) -> None:
    found = inside.exchange(
        b"POST /v1/retire HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n" + b"x" * 20_000_000
    )
    assert found.startswith(b"HTTP/1.1 413 ")


@pytest.mark.rule("C-207")
def test_one_connection_takes_many_requests(inside: Inside) -> None:
    found = inside.exchange(PING * 50)
    assert found.count(b"HTTP/1.1 200 OK") == 50


@pytest.mark.rule("C-207")
def test_a_connection_too_many_is_told_to_come_again(inside: Inside) -> None:
    lines = [inside.dial() for _ in range(paths.MAX_CONNECTIONS)]
    try:
        for line in lines:
            line.sendall(PING)
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
        found = inside.exchange(PING)
        assert found.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1\r\n" in found
        assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["code"] == "busy"
    finally:
        for line in lines:
            line.close()
    limit = threading.Event()
    for _ in range(200):
        if inside.exchange(PING).startswith(b"HTTP/1.1 200"):
            return
        limit.wait(0.05)
    pytest.fail("no place became free")


@pytest.mark.rule("C-207")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_another_user_is_not_answered(inside: Inside, programs: None) -> None:
    # The folder keeps others out; it is opened here to see that the daemon does so itself, too.
    os.chmod(inside.socket.parent.parent, 0o755)
    os.chmod(inside.socket.parent, 0o755)
    os.chmod(inside.socket, 0o666)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            with inside.dial() as line:
                line.sendall(PING)
                os.write(writing, b"connected:" + line.recv(1 << 16))
        except OSError as error:
            os.write(writing, b"connected:" if isinstance(error, BrokenPipeError | ConnectionResetError) else b"no")
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as found:
        assert found.read() == b"connected:"
    assert "user 65534 tried to connect" in inside.home.layout.daemon_log.read_text()
    assert inside.exchange(PING).startswith(b"HTTP/1.1 200")


def test_a_caller_that_hangs_up_harms_nobody(inside: Inside) -> None:
    for raw in (b"", b"GET", PING[:-2], b"POST /v1/retire HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"):
        with inside.dial() as line:
            line.sendall(raw)
    assert inside.exchange(PING).startswith(b"HTTP/1.1 200")


@pytest.mark.rule("C-210", "C-213")
def test_a_slow_acceptance_shows_signs_of_life_and_then_its_own_status(hasty: Inside, tmp_path: Path) -> None:
    from tests.client.test_line import submission

    body = submission("0" * 8, "pack", str(tmp_path / "go"))
    with hasty.dial() as line:
        line.sendall(
            b"POST /v1/submissions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        found = line.recv(25)
        assert found == b"HTTP/1.1 100 Continue\r\n\r\n"
        (tmp_path / "go").touch()
        while piece := line.recv(1 << 16):
            found += piece
    assert b"HTTP/1.1 202 Accepted\r\n" in found


@pytest.mark.rule("C-210", "C-214")
def test_a_wait_holds_at_most_its_time(hasty: Inside, tmp_path: Path) -> None:
    from tests.client.test_line import submission

    hasty.ask("POST", "/v1/submissions", submission("0" * 8, "until", str(tmp_path / "go")))
    status, document = hasty.ask("GET", "/v1/queue/q-00000000/wait?timeout_s=0.2")
    assert status == 200
    assert document["ticket"]["state"] == "running"  # type: ignore[index,call-overload]
    (tmp_path / "go").touch()
    status, document = hasty.ask("GET", "/v1/queue/q-00000000/wait?timeout_s=10")
    assert document["ticket"]["state"] == "completed"  # type: ignore[index,call-overload]


@pytest.mark.rule("C-216")
def test_events_are_streamed_with_signs_of_life(hasty: Inside) -> None:
    with hasty.dial() as line, line.makefile("rb") as lines:
        line.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        head = [lines.readline() for _ in range(3)]
        assert head[0] == b"HTTP/1.1 200 OK\r\n" and b"Content-Type: text/event-stream\r\n" in head
        while lines.readline() != b": alive\n":
            pass
        assert hasty.gate.requests == 1, "an open stream keeps the daemon"
        hasty.engine.hub.publish("ticket", "p", {})
        while not (found := lines.readline()).startswith(b"id: "):
            pass
        assert found.endswith(b"-1\n")


@pytest.mark.rule("C-221")
def test_what_arrived_before_the_end_is_still_answered(home: Home, real_clock: None) -> None:
    inside = Inside.start(home)
    lines = [inside.dial() for _ in range(5)]
    inside.gate.shut()
    inside.server.shut()
    inside.accepting.join(LIMIT_S)
    assert not inside.accepting.is_alive()
    for line in lines:
        line.sendall(PING)
        found = line.recv(1 << 16)
        assert found.startswith(b"HTTP/1.1 503 ") and b'"code":"leaving"' in found
        line.close()
    with pytest.raises(OSError):
        inside.dial()
    inside.close()


def test_a_socket_appears_only_when_it_can_be_used(home: Home) -> None:
    home.folders.runtime.mkdir(mode=0o700)
    path = home.folders.runtime / "daemon.sock"
    listener, beside = server.bind(path)
    assert not path.exists()
    assert beside.stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.fspath(beside))
    listener.close()
    again, _ = server.bind(path)
    again.close()


def test_want_of_file_handles_passes(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    really, failures = inside.server.get_request, [OSError(24, "Too many open files")] * 2

    def get_request() -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return really()

    monkeypatch.setattr(server, "RECOVER_S", 0.01)
    monkeypatch.setattr(inside.server, "get_request", get_request)
    assert inside.exchange(PING).startswith(b"HTTP/1.1 200")  # the call that was under way
    assert inside.exchange(PING).startswith(b"HTTP/1.1 200")
    assert not failures
    assert "Too many open files" in inside.home.layout.daemon_log.read_text()
