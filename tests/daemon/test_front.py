"""The strict front: each malformed frame has its exact status, and nothing else comes through."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.daemon import front
from aj.daemon.front import Reply
from aj.wire import paths
from aj.wire.errors import Malformed

HOST = b"Host: x\r\n"
GET = b"GET /v1/ping HTTP/1.1\r\n" + HOST
POST = b"POST /v1/retire HTTP/1.1\r\n" + HOST

MALFORMED = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
    "a lone newline": (b"\r\n", 400),
    "no version": (b"GET /v1/ping\r\n\r\n", 400),
    "HTTP/0.9 words": (b"GET\r\n\r\n", 400),
    "HTTP/1.0": (b"GET /v1/ping HTTP/1.0\r\n\r\n", 505),
    "HTTP/2.0": (b"GET /v1/ping HTTP/2.0\r\n\r\n", 505),
    "two spaces": (b"GET  /v1/ping HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "an absolute address": (b"GET http://x/v1/ping HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a fragment": (b"GET /v1/ping#a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a control character in the path": (b"GET /v1/\x01 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a byte above ASCII in the path": ("GET /v1/ü HTTP/1.1\r\n".encode() + HOST + b"\r\n", 400),
    "a bare newline": (b"GET /v1/ping HTTP/1.1\n" + HOST + b"\r\n", 400),
    "a bare newline after a header": (b"GET /v1/ping HTTP/1.1\r\nHost: x\n\r\n", 400),
    "no host": (b"GET /v1/ping HTTP/1.1\r\n\r\n", 400),
    "two hosts": (GET + HOST + b"\r\n", 400),
    "a space before the colon": (GET + b"A : b\r\n\r\n", 400),
    "a folded header": (GET + b"A: b\r\n c\r\n\r\n", 400),
    "no colon": (GET + b"Ab\r\n\r\n", 400),
    "a NUL in a header": (GET + b"A: b\0c\r\n\r\n", 400),
    "a return in a header": (GET + b"A: b\rc\r\n\r\n", 400),
    "the head ends early": (GET + b"A: b", 400),
    "no length": (POST + b"\r\n{}", 411),
    "chunked": (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
    "chunked with a length": (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", 400),
    "chunked on a read": (GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
    "two lengths": (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
    "two lengths in one": (POST + b"Content-Length: 2, 2\r\n\r\n{}", 400),
    "a signed length": (POST + b"Content-Length: +2\r\n\r\n{}", 400),
    "a negative length": (POST + b"Content-Length: -2\r\n\r\n{}", 400),
    "a hexadecimal length": (POST + b"Content-Length: 0x2\r\n\r\n{}", 400),
    "a length with an underscore": (POST + b"Content-Length: 1_0\r\n\r\n{}", 400),
    "an empty length": (POST + b"Content-Length:\r\n\r\n", 400),
    "a length beyond all numbers": (POST + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n", 400),
    "a body that is too large": (POST + b"Content-Length: 20000000\r\n\r\n", 413),
    "one byte too large": (POST + b"Content-Length: %d\r\n\r\n" % (paths.MAX_BODY_BYTES + 1), 413),
    "a body that ends early": (POST + b"Content-Length: 5\r\n\r\n{}", 400),
    "Expect": (POST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{}", 417),
    "a request line without end": (b"GET /" + b"a" * 70_000, 431),
    "a long header": (GET + b"A: " + b"b" * 70_000 + b"\r\n\r\n", 431),
    "many headers": (GET + b"A: b\r\n" * 20_000 + b"\r\n", 431),
}


@pytest.mark.rule("C-207", "C-297")
@pytest.mark.parametrize(("raw", "status"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_frame_has_its_status(raw: bytes, status: int) -> None:
    with pytest.raises(Malformed) as error:
        front.read(io.BytesIO(raw))
    assert error.value.status == status


@pytest.mark.rule("C-207")
def test_a_whole_request_is_read_and_the_next_one_after_it() -> None:
    body = b'{"a": 1}'
    first = POST + b"content-LENGTH:  8 \r\nAj-Request:\tabc\r\nX: 1\r\nX: 2\r\n\r\n" + body
    stream = io.BytesIO(first + b"GET /v1/queue?all=1 HTTP/1.1\r\nHost: y\r\nConnection: Close\r\n\r\n")
    found = front.read(stream)
    assert found is not None
    assert (found.method, found.path, found.query, found.body, found.closes) == ("POST", "/v1/retire", "", body, False)
    assert found.headers[paths.REQUEST] == "abc"
    assert found.headers["x"] == "1, 2"
    after = front.read(stream)
    assert after is not None
    assert (after.method, after.path, after.query, after.body, after.closes) == ("GET", "/v1/queue", "all=1", b"", True)
    assert front.read(stream) is None


@pytest.mark.rule("C-207")
def test_the_limits_themselves_pass() -> None:
    body = b" " * paths.MAX_BODY_BYTES
    found = front.read(io.BytesIO(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    assert found is not None and len(found.body) == paths.MAX_BODY_BYTES
    filling = paths.MAX_HEAD_BYTES - len(GET) - len(b"A: \r\n\r\n")
    assert front.read(io.BytesIO(GET + b"A: " + b"b" * filling + b"\r\n\r\n")) is not None


@pytest.mark.rule("C-207")
@given(st.binary(max_size=300) | st.binary(max_size=80).map(lambda tail: GET + tail))
def test_no_bytes_do_anything_but_pass_or_be_refused(raw: bytes) -> None:
    try:
        found = front.read(io.BytesIO(raw))
    except Malformed as error:
        assert error.status in front.REASONS
    else:
        assert found is None or found.path.startswith("/")


@pytest.mark.rule("C-208")
def test_an_answer_repeats_the_request_and_tells_its_length() -> None:
    head, _, body = front.encode(Reply(200, {"name": "ü\udcff"}), "abc", closes=True).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert b"aj-request: abc" in lines
    assert b"Connection: close" in lines
    assert b"Content-Length: %d" % len(body) in lines
    assert json.loads(body) == {"name": "ü\udcff"}
    assert b"Connection" not in front.encode(Reply(200, {}), "abc", closes=False)
