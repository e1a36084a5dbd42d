"""The network door: one try, exactly how far it got, where a token may go, and what an answer means."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from aj.base import redact
from aj.base.clock import SYSTEM
from aj.base.errors import (
    AjError,
    AuthError,
    ConfigError,
    NotFound,
    OutcomeUnknown,
    Refused,
    RemoteError,
    Unavailable,
)
from aj.base.settings import Settings
from aj.net import document, http, pool, proxies, refusal
from aj.net.clouds import PUBLIC
from aj.net.http import Bearer, Limit, Request
from aj.net.origin import Origin
from aj.net.pool import Pool
from tests.conftest import MovedClock
from tests.servers.loopback import Answer, Cut, Got, Loopback, Stall, problem, serving

SECRET = "planted-token-of-a-test"


def hello(got: Got) -> Answer:
    return Answer(200, {"hello": "world"})


@pytest.fixture
def server(loopback: None) -> Iterator[Loopback]:
    with serving(hello) as started:
        yield started
    assert started.left() == []


@pytest.fixture
def door(loopback: None, clock: MovedClock) -> Iterator[Pool]:
    with http.connect(Settings({}), clock) as made:
        yield made


def get(url: str, **more: object) -> Request:
    return replace(Request("GET", url, "say hello"), **more)  # type: ignore[arg-type]


def put(url: str, body: bytes = b'{"a":1}', **more: object) -> Request:
    return replace(Request("PUT", url, "store it", body=body), **more)  # type: ignore[arg-type]


def origin(server: Loopback) -> Origin:
    return Origin.parse(server.url)


def closed_port() -> str:
    """An address of this machine where nobody listens."""
    with serving(hello) as gone:
        return gone.url


# What leaves


@pytest.mark.rule("A-010")
def test_each_request_names_us_and_has_an_id_of_its_own(server: Loopback, door: Pool) -> None:
    for _ in range(3):
        door.ask(get(server.url + "/x"))
    door.send(put(server.url + "/x"))
    ids = [got.headers["x-ms-client-request-id"] for got in server.got]
    assert len(set(ids)) == 4
    assert all(re.fullmatch(r"[0-9a-f-]{36}", one) for one in ids)
    assert {got.headers["user-agent"].split("/")[0] for got in server.got} == {"aj"}


@pytest.mark.rule("A-001")
def test_questions_share_a_connection_and_a_change_has_its_own(server: Loopback, door: Pool) -> None:
    for _ in range(5):
        door.ask(get(server.url + "/x"))
    assert server.connections == 1
    for _ in range(3):
        door.send(put(server.url + "/x"))
    assert server.connections == 4
    door.ask(get(server.url + "/x"))
    assert server.connections == 4


@pytest.mark.rule("A-001")
def test_sixteen_questions_at_once_are_answered_each(server: Loopback, door: Pool) -> None:
    server.answer = lambda got: Answer(200, {"path": got.path})
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda n: door.ask(get(f"{server.url}/{n}")), range(60)))
    assert [json.loads(answer.body)["path"] for answer in found] == [f"/{n}" for n in range(60)]
    assert server.connections <= 16


def test_the_body_arrives_whole_and_once(server: Loopback, door: Pool) -> None:
    body = bytes(range(256)) * 4000
    door.send(put(server.url + "/x", body))
    door.send(Request("POST", server.url + "/x", "stop it"))
    door.send(Request("DELETE", server.url + "/x", "drop it"))
    assert [(got.method, len(got.body)) for got in server.got] == [("PUT", len(body)), ("POST", 0), ("DELETE", 0)]
    assert server.got[0].body == body
    assert all("transfer-encoding" not in got.headers for got in server.got)


def test_a_compressed_answer_is_read(server: Loopback, door: Pool) -> None:
    server.answer = lambda got: Answer(200, raw=gzip.compress(b'{"a": 1}'), headers={"Content-Encoding": "gzip"})
    answer = door.ask(get(server.url + "/x"))
    assert document.of(answer, get(server.url)).whole("a") == 1


# Where a token goes


@pytest.mark.rule("A-006", "A-017")
def test_a_token_goes_to_its_own_origin_alone(server: Loopback, door: Pool) -> None:
    bearer = Bearer(SECRET, (origin(server),))
    door.ask(get(server.url + "/x", bearer=bearer))
    assert server.got[-1].headers["authorization"] == f"Bearer {SECRET}"
    door.ask(get(server.url + "/x"))
    assert "authorization" not in server.got[-1].headers
    with serving(hello) as other:
        for carry in (door.ask, door.send):
            with pytest.raises(RemoteError, match=r"a link to host .* was not followed: it is not ") as error:
                carry(get(other.url + "/x", bearer=bearer))
            assert SECRET not in str(error.value)
        assert other.connections == 0


@pytest.mark.rule("A-006")
@pytest.mark.parametrize(
    "url",
    [
        "https://management.azure.com@evil.example/x",
        "https://evil.example\\@management.azure.com/x",
        "https://management.azure.com.evil.example/x",
        "https://management.azure.com:444/x",
        "http://management.azure.com/x",
        "https://xmanagement.azure.com/x",
        "https://MANAGEMENT.azure.com./x",
        "https://management.azure.com\t/x",
        "https://management.azure.com\r\nHost: evil.example/x",
        "https://mаnagement.azure.com/x",
        "//management.azure.com/x",
        "management.azure.com/x",
        "file:///etc/passwd",
        "",
    ],
)
def test_an_address_that_only_looks_right_gets_no_token(door: Pool, url: str) -> None:
    with pytest.raises(RemoteError) as error:
        door.ask(get(url, bearer=Bearer(SECRET, (PUBLIC.arm,))))
    assert SECRET not in str(error.value)


@pytest.mark.rule("A-006")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed(server: Loopback, door: Pool, status: int) -> None:
    with serving(hello) as other:
        for carry, request in ((door.ask, get), (door.send, put)):
            server.on("/x", Answer(status, {}, {"Location": other.url + "/stolen"}))
            with pytest.raises(RemoteError, match="redirect"):
                carry(request(server.url + "/x", bearer=Bearer(SECRET, (origin(server),))))
        assert other.got == []


@pytest.mark.rule("A-006")
@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("*.azureml.ms", "https://westus3.api.azureml.ms/x", True),
        ("*.azureml.ms", "https://azureml.ms/x", False),
        ("*.azureml.ms", "https://evilazureml.ms/x", False),
        ("*.azureml.ms", "https://a.azureml.ms:8443/x", False),
        ("*.azureml.ms", "http://a.azureml.ms/x", False),
        ("management.azure.com", "https://MANAGEMENT.AZURE.COM/x", True),
        ("management.azure.com", "https://management.azure.com:443/x", True),
        ("management.azure.com", "https://a.management.azure.com/x", False),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000/x", True),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5001/x", False),
    ],
)
def test_origins_cover(pattern: str, url: str, fits: bool) -> None:
    assert Origin.parse(pattern).covers(Origin.of_url(url)) is fits


def test_a_token_never_goes_by_plain_http_to_another_machine(door: Pool) -> None:
    plain = Origin("http", "plain.example", 80)
    with pytest.raises(RemoteError, match="was not followed"):
        door.ask(get("http://plain.example/x", bearer=Bearer(SECRET, (plain,))))


# How far a change got


@pytest.mark.rule("A-003")
def test_a_connection_that_never_opened_changed_nothing(door: Pool) -> None:
    with pytest.raises(Unavailable, match=r"could not store it: 127\.0\.0\.1:\d+ cannot be reached"):
        door.send(put(closed_port() + "/x"))


@pytest.mark.rule("A-003")
def test_a_name_that_nobody_has_changed_nothing(
    loopback: None, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    def nobody(*words: object, **more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with Pool(Settings({}), clock) as door, pytest.raises(Unavailable, match=r"there is no host nowhere\.example"):
        door.send(put("https://nowhere.example/x"))


@pytest.mark.rule("A-003")
def test_a_handshake_that_failed_changed_nothing(loopback: None, clock: MovedClock, tmp_path: Path) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    bundle = tmp_path / "ca.pem"
    ours.cert_pem.write_to_path(str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.issue_cert("127.0.0.1").configure_cert(context)
    with serving(hello, context) as server, Pool(Settings({"SSL_CERT_FILE": str(bundle)}), clock) as door:
        with pytest.raises(Unavailable, match=r"certificate of .* is not trusted") as error:
            door.send(put(server.url + "/x"))
        assert "SSL_CERT_FILE" in (error.value.hint or "")
        server.hangs_up = True
        with pytest.raises(Unavailable, match="could not store it"):
            door.send(put(server.url + "/x"))
        assert server.got == []


@pytest.mark.rule("A-003")
@pytest.mark.parametrize("cut", [Cut.AFTER_HEADERS, Cut.AFTER_BODY, Cut.MID_ANSWER])
@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_cut_after_the_request_left_is_unknown_and_nothing_is_sent_twice(
    server: Loopback, door: Pool, cut: Cut, method: str
) -> None:
    server.on("/x", cut)
    # larger than what the system takes without anyone reading it
    body = b"x" * 8_000_000 if method == "PUT" else None
    with pytest.raises(OutcomeUnknown, match="whether it worked to change it is not known") as error:
        door.send(Request(method, server.url + "/x", "change it", body=body))
    assert re.fullmatch(r"[0-9a-f-]{36}", str(error.value.details["request_id"]))
    assert error.value.details["at"] == "2027-01-15T08:00:00.000000Z"
    assert len(server.got) == (0 if cut is Cut.AFTER_HEADERS else 1)
    assert server.connections == 1


@pytest.mark.rule("A-003")
@pytest.mark.parametrize("cut", list(Cut))
def test_a_cut_question_is_only_unavailable(server: Loopback, door: Pool, cut: Cut) -> None:
    server.on("/x", cut)
    with pytest.raises(Unavailable, match=r"could not say hello: the connection to .* broke"):
        door.ask(get(server.url + "/x"))


@pytest.mark.rule("A-003")
@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_vague_status_leaves_a_change_unknown(server: Loopback, door: Pool, status: int) -> None:
    server.on("/x", problem(status, "Oops", "try later"))
    with pytest.raises(OutcomeUnknown) as error:
        door.send(put(server.url + "/x"))
    assert error.value.details == {"status": status, "remote_code": "Oops", "request_id": f"request-{status}"}


@pytest.mark.rule("A-003")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RemoteError),
        (403, Refused),
        (404, NotFound),
        (405, RemoteError),
        (409, Refused),
        (412, Refused),
        (429, Unavailable),
    ],
)
def test_a_refusal_of_a_change_is_definite(server: Loopback, door: Pool, status: int, kind: type[AjError]) -> None:
    server.on("/x", problem(status, "No", "not so"))
    with pytest.raises(AjError) as error:
        door.send(put(server.url + "/x"))
    assert type(error.value) is kind


@pytest.mark.rule("A-003")
def test_an_answer_that_cannot_be_read_leaves_a_change_unknown(server: Loopback, door: Pool) -> None:
    request = put(server.url + "/x")
    for raw in (b"<html>", b"[]", b""):
        server.on("/x", Answer(200, raw=raw))
        with pytest.raises(OutcomeUnknown):
            document.of_change(door.send(request), request)
    server.on("/x", Answer(200, raw=b"no gzip", headers={"Content-Encoding": "gzip"}))
    with pytest.raises(OutcomeUnknown):
        door.send(request)


# How long an answer may take


@pytest.mark.rule("A-001")
@pytest.mark.parametrize("stall", list(Stall))
def test_silence_ends_at_the_limit(server: Loopback, door: Pool, stall: Stall) -> None:
    short = Limit(0.1)
    server.on("/x", stall, stall)
    with pytest.raises(Unavailable, match=r"gave no whole answer within 0\.1 s"):
        door.ask(get(server.url + "/x", limit=short))
    with pytest.raises(OutcomeUnknown, match=r"gave no whole answer within 0\.1 s"):
        door.send(put(server.url + "/x", limit=short))


@pytest.mark.rule("A-001")
def test_a_slow_answer_has_an_end_unless_it_only_must_move(server: Loopback, clock: MovedClock) -> None:
    class Slow(MovedClock):
        def monotonic(self) -> float:
            self.move(20)  # between any two looks
            return self.ran

    server.answer = lambda got: Answer(200, raw=b"x" * 300_000)
    with Pool(Settings({}), Slow()) as door:
        with pytest.raises(Unavailable, match="gave no whole answer within 30 s"):
            door.ask(get(server.url + "/x"))
        assert len(door.ask(get(server.url + "/x", limit=http.BLOB)).body) == 300_000


HEAD = b"HTTP/1.1 200 OK\r\nX-Long: "
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a="
REFUSED = b"HTTP/1.1 500 Oops\r\nContent-Length: 1000000\r\n\r\n"


@contextlib.contextmanager
def dripping(begin: bytes) -> Iterator[str]:
    """A server that says the beginning at once and then one byte after the other, for as long as it is heard."""
    closing = threading.Event()

    class Drip(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.connection.recv(1 << 16)
            with contextlib.suppress(OSError):
                self.wfile.write(begin)
                while not closing.wait(0.02):
                    self.wfile.write(b"x")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drip) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        closing.set()
        server.shutdown()


@pytest.mark.rule("A-001", "WA-01")
@pytest.mark.parametrize("begin", [b"", HEAD, SIZED, CHUNKED])
def test_an_answer_that_drips_ends_at_the_limit(loopback: None, monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    monkeypatch.setattr(pool, "CONNECT_S", 0.2)
    with dripping(begin) as url, Pool(Settings({}), SYSTEM) as door:
        started = SYSTEM.monotonic()
        with pytest.raises(Unavailable, match=r"gave no whole answer within 0\.2 s"):
            door.ask(get(url + "/x", limit=Limit(0.2)))
        with pytest.raises(OutcomeUnknown, match=r"gave no whole answer within 0\.2 s"):
            door.send(put(url + "/x", limit=Limit(0.2)))
        assert SYSTEM.monotonic() - started < 5


@pytest.mark.rule("WA-01")
def test_an_answer_of_which_the_status_alone_matters_is_not_waited_for(
    loopback: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dripping(SIZED) as url, Pool(Settings({}), SYSTEM) as door:
        started = SYSTEM.monotonic()
        assert door.send(put(url + "/x", is_answer_read=False)).status == 200
        assert SYSTEM.monotonic() - started < 5
    monkeypatch.setattr(pool, "CONNECT_S", 0.2)
    with dripping(REFUSED) as url, Pool(Settings({}), SYSTEM) as door, pytest.raises(OutcomeUnknown):
        door.send(put(url + "/x", is_answer_read=False, limit=Limit(0.2)))


@pytest.mark.rule("A-001")
def test_the_limits_are_those_of_their_classes() -> None:
    limits = [http.QUICK, http.STANDARD, http.LONG, http.BLOB]
    assert [(limit.seconds, limit.stall) for limit in limits] == [(15, False), (30, False), (60, False), (60, True)]
    assert pool.CONNECT_S == 10


def test_an_answer_has_a_largest_size(server: Loopback, door: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_BODY", 100_000)
    server.answer = lambda got: Answer(200, raw=b"x" * 200_000)
    with pytest.raises(RemoteError, match="larger than"):
        door.ask(get(server.url + "/x"))
    with pytest.raises(OutcomeUnknown, match="larger than"):
        door.send(put(server.url + "/x"))


# What a refusal says


@pytest.mark.rule("A-005")
def test_a_refusal_tells_code_words_and_request_id(server: Loopback, door: Pool) -> None:
    server.on("/x", problem(400, "BadQuota", "no quota", "one", "two", "three", "four"))
    with pytest.raises(RemoteError) as error:
        door.ask(get(server.url + "/x"))
    assert error.value.message == "could not say hello: BadQuota: no quota; one; two; three"
    assert error.value.details == {"status": 400, "remote_code": "BadQuota", "request_id": "request-400"}


@pytest.mark.rule("A-005")
@pytest.mark.parametrize("header", ["x-ms-request-id", "x-ms-correlation-request-id"])
def test_the_request_id_comes_from_either_header(server: Loopback, door: Pool, header: str) -> None:
    server.on("/x", Answer(404, {"error": {"code": "Gone", "message": "m"}}, {header: "id-1"}))
    with pytest.raises(NotFound) as error:
        door.ask(get(server.url + "/x"))
    assert error.value.details["request_id"] == "id-1"


@pytest.mark.rule("A-005")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, AuthError),
        (403, Refused),
        (404, NotFound),
        (409, Refused),
        (412, Refused),
        (429, Unavailable),
        (500, Unavailable),
        (501, Unavailable),
        (503, Unavailable),
        (400, RemoteError),
        (416, RemoteError),
    ],
)
def test_each_status_has_its_kind(server: Loopback, door: Pool, status: int, kind: type[AjError]) -> None:
    server.on("/x", problem(status, "C", "m"))
    with pytest.raises(kind) as error:
        door.ask(get(server.url + "/x"))
    assert refusal.status_of(error.value) == status
    assert refusal.said_by(error.value) == "C"


@pytest.mark.rule("A-005")
def test_a_missing_right_names_the_resource(server: Loopback, door: Pool) -> None:
    server.on("/x", problem(403, "AuthorizationFailed", "no"), problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused, match=r"\(no right on /subscriptions/a/resourceGroups/b\)"):
        door.ask(get(server.url + "/x", resource="/subscriptions/a/resourceGroups/b"))
    with pytest.raises(Refused, match=r"\(no right on 127\.0\.0\.1\)"):
        door.ask(get(server.url + "/x"))


@pytest.mark.rule("A-005", "A-011")
def test_words_that_are_not_json_are_cut_and_redacted(server: Loopback, door: Pool) -> None:
    page = f"<html>\x1b[31m Bearer {SECRET} https://a.blob/x?sv=1&sig=abcdef{'y' * 2000}".encode()
    server.on("/x", Answer(502, raw=page))
    with pytest.raises(Unavailable) as error:
        door.ask(get(server.url + "/x"))
    assert SECRET not in error.value.message
    assert "abcdef" not in error.value.message
    assert "\x1b" not in error.value.message
    assert len(error.value.message) < 600


@pytest.mark.rule("A-005")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[1]",
        b'"x"',
        b"{}",
        b'{"error": null}',
        b'{"error": {"code": 5, "details": 3}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_any_body_of_a_refusal_can_be_read(server: Loopback, door: Pool, body: bytes) -> None:
    server.on("/x", Answer(400, raw=body))
    with pytest.raises(RemoteError, match="could not say hello: "):
        door.ask(get(server.url + "/x"))


def test_the_words_of_a_sign_in_service_are_read_too(server: Loopback, door: Pool) -> None:
    server.on("/x", Answer(400, {"error": "invalid_client", "error_description": "AADSTS1: no"}))
    with pytest.raises(RemoteError, match="invalid_client: AADSTS1: no"):
        door.ask(get(server.url + "/x"))


def test_a_status_that_is_expected_is_an_answer(server: Loopback, door: Pool) -> None:
    server.on("/x", problem(416, "C", "m"), problem(404, "C", "m"))
    assert door.ask(get(server.url + "/x", expects=(416,))).status == 416
    with pytest.raises(NotFound):
        door.ask(get(server.url + "/x", expects=(416,)))


# Secrets


@pytest.mark.rule("A-011")
def test_requests_and_errors_do_not_show_secrets(server: Loopback, door: Pool) -> None:
    url = server.url + f"/x?sig={SECRET}"
    request = get(url, bearer=Bearer(SECRET, (origin(server),)), headers={"X": SECRET}, body=SECRET.encode())
    assert SECRET not in repr(request)
    server.on("/x", Cut.AFTER_BODY, problem(400, "C", f"you sent ?sv=1&sig={SECRET} with Bearer {SECRET}"))
    for _ in range(2):
        with pytest.raises(AjError) as error:
            door.ask(request)
        assert SECRET not in str(error.value) + repr(error.value.details)


@pytest.mark.rule("A-011")
def test_a_secret_that_no_pattern_knows_is_masked_once_it_is_told() -> None:
    odd = "just some words of a key"
    assert odd in redact.text(f"the key is {odd}!")
    redact.hide(odd)
    redact.hide("x")
    assert redact.text(f"the key is {odd}, x") == "the key is ***, x"


def test_hidden_secrets_are_bounded() -> None:
    words = [f"secret-number-{n:06}" for n in range(redact.KEPT + 50)]
    for word in words:
        redact.hide(word)
    assert redact.text(words[-1]) == "***"
    assert redact.text(words[0]) == words[0]
    assert len(redact._LITERALS) <= redact.KEPT


# The way out


@pytest.mark.rule("A-010")
@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
def test_a_proxy_carries_plain_requests_and_hears_who_asks(loopback: None, clock: MovedClock, name: str) -> None:
    with serving(hello) as proxy:
        settings = Settings({name: f"http://ada:pass%20word@{proxy.netloc}"})
        with Pool(settings, clock) as door:
            door.ask(get("http://127.0.0.2:9/x"))
            door.send(put("http://127.0.0.2:9/y"))
    assert proxy.targets() == ["GET /x", "PUT /y"]
    assert {got.headers["host"] for got in proxy.got} == {"127.0.0.2:9"}
    assert {got.headers["proxy-authorization"] for got in proxy.got} == {"Basic YWRhOnBhc3Mgd29yZA=="}


@pytest.mark.rule("A-003", "A-010")
def test_a_proxy_that_refuses_to_connect_changed_nothing(loopback: None, clock: MovedClock) -> None:
    with (
        serving(lambda got: problem(403, "No", "not there")) as proxy,
        Pool(Settings({"HTTPS_PROXY": proxy.url}), clock) as door,
        pytest.raises(Unavailable, match="proxy"),
    ):
        door.send(put("https://management.example/x"))


@pytest.mark.rule("A-010")
@pytest.mark.parametrize(
    ("exempt", "url", "is_direct"),
    [
        ("", "https://a.example/x", False),
        ("*", "https://a.example/x", True),
        ("a.example", "https://a.example/x", True),
        ("example", "https://a.example/x", True),
        (".example", "https://a.example/x", True),
        ("*.example", "https://a.example/x", True),
        ("other, A.Example ", "https://a.example/x", True),
        ("ample", "https://a.example/x", False),
        ("a.example:443", "https://a.example/x", True),
        ("a.example:8443", "https://a.example/x", False),
        ("127.0.0.1,::1", "https://[::1]/x", True),
    ],
)
def test_hosts_without_proxy(exempt: str, url: str, is_direct: bool) -> None:
    settings = Settings({"HTTPS_PROXY": "proxy.example:8080", "NO_PROXY": exempt})
    found = proxies.of(settings, Origin.of_url(url))
    assert found == (None if is_direct else "http://proxy.example:8080")


@pytest.mark.rule("A-010", "WA-04")
@pytest.mark.parametrize(
    "proxy",
    [
        *("http://ada:pass-word@badhost:99999", "http://ada:pass-word@host:0", "http://ada:pass-word@host:port"),
        *("http://ada:pass-word@", "http://ada:pass-word@:80", "http://ada:pass-word@my host:80"),
        *("ada:pass-word@host:99999", "http://ada:pass-word@[::1", "http://ada:pass-word@*.x:80", "http://\nada@x"),
        "http://ada:pass/word@host:80",
    ],
)
def test_a_proxy_with_which_nothing_can_work_is_told_by_its_variable(proxy: str) -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY names no proxy") as error:
        proxies.of(Settings({"HTTPS_PROXY": proxy}), Origin.parse("a.example"))
    assert "ada" not in str(error.value) and "word" not in str(error.value)


@pytest.mark.rule("WA-04")
def test_the_password_of_a_proxy_in_use_is_hidden_wherever_it_appears() -> None:
    proxies.of(Settings({"HTTPS_PROXY": "http://ada:s%40fe-pass-word@host:80"}), Origin.parse("a.example"))
    assert redact.text("it is s%40fe-pass-word or s@fe-pass-word") == "it is *** or ***"


@pytest.mark.rule("WA-04")
@pytest.mark.parametrize(
    "address", ["http://u:p@ss@host:9/x", "https://ghp_token@host/x", "socks5://:pass@host", "ftp://u:p@host"]
)
def test_credentials_of_any_address_are_masked(address: str) -> None:
    scheme, _, rest = address.partition("://")
    told = redact.text(f"Failed to parse: {address}, port out of range")
    assert told == f"Failed to parse: {scheme}://***@{rest.rpartition('@')[2]}, port out of range"


@pytest.mark.rule("A-010")
def test_a_proxy_that_is_none_is_told_without_its_password() -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY names no proxy") as error:
        proxies.of(Settings({"HTTPS_PROXY": "socks5://ada:secret@x"}), Origin.parse("a.example"))
    assert "secret" not in str(error.value)


@pytest.mark.rule("A-010")
@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_the_certificates_come_from_the_usual_variables(
    loopback: None, clock: MovedClock, tmp_path: Path, name: str
) -> None:
    ca = trustme.CA()
    bundle = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    with serving(hello, context) as server:
        with Pool(Settings({name: str(bundle)}), clock) as door:
            assert door.ask(get(server.url + "/x")).status == 200
            assert door.send(put(server.url + "/x")).status == 200
        with Pool(Settings({}), clock) as door, pytest.raises(Unavailable, match="not trusted"):
            door.ask(get(server.url + "/x"))
    with Pool(Settings({name: str(tmp_path / "absent.pem")}), clock) as door:
        for carry in (door.ask, door.send):
            with pytest.raises(ConfigError, match=f"{name}=.*no certificates can be read there"):
                carry(get("https://a.example/x"))


# Reading


Reader = Callable[[document.Document], object]


def read(values: dict[str, object]) -> document.Document:
    return document.Document(values, "the answer to `say hello`")  # type: ignore[arg-type]


def test_absent_and_null_are_none() -> None:
    found = read({"a": None, "b": {"c": None}})
    assert [found.text("a"), found.text("b", "c"), found.text("x", "y"), found.whole("a"), found.flag("a")] == [
        None
    ] * 5
    assert (found.inner("a").values, found.each("a"), found.words("a"), found.texts("x")) == ({}, (), (), {})


@pytest.mark.parametrize(
    ("values", "reader", "words"),
    [
        ({"a": 5}, lambda d: d.text("a"), "`a` is not a text"),
        ({"a": {"b": True}}, lambda d: d.whole("a", "b"), "`a.b` is not a whole number"),
        ({"a": 1.5}, lambda d: d.whole("a"), "`a` is not a whole number"),
        ({"a": "1"}, lambda d: d.number("a"), "`a` is not a number"),
        ({"a": 1}, lambda d: d.flag("a"), "`a` is not true or false"),
        ({"a": []}, lambda d: d.inner("a"), "`a` is not an object"),
        ({"a": {}}, lambda d: d.each("a"), "`a` is not a list"),
        ({"a": [{}, 1]}, lambda d: d.each("a"), "`a.1` is not an object"),
        ({"a": [1]}, lambda d: d.words("a"), "`a` is not a list of texts"),
        ({"a": "x"}, lambda d: d.text("a", "b"), "`a` is not an object"),
        ({"a": {"b": 1}}, lambda d: d.texts("a"), "`a.b` is not a text"),
        ({"a": [{"b": 1}]}, lambda d: d.each("a")[0].text("b"), "`a.0.b` is not a text"),
        ({}, lambda d: d.need_text("a"), "`a` is missing"),
        ({"a": ""}, lambda d: d.need_text("a"), "`a` is missing"),
    ],
)
def test_a_field_of_another_kind_is_an_error_that_names_it(
    values: dict[str, object], reader: Reader, words: str
) -> None:
    with pytest.raises(RemoteError) as error:
        reader(read(values))
    assert error.value.message == f"the answer to `say hello`: {words}"


def test_whole_numbers_written_with_a_point_are_whole() -> None:
    assert read({"a": 2.0}).whole("a") == 2
    assert read({"a": 2}).number("a") == 2.0


def test_closing_is_for_every_thread(server: Loopback, clock: MovedClock) -> None:
    door = Pool(Settings({}), clock)
    threads = [threading.Thread(target=door.ask, args=(get(server.url + "/x"),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    door.close()
    assert door.ask(get(server.url + "/x")).status == 200  # it opens anew
    door.close()


@pytest.mark.rule("A-010")
def test_a_python_that_knows_no_certificates_uses_those_that_came_along(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = ssl.get_default_verify_paths()._replace(cafile=None, capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nothing)
    assert pool._trust(Settings({})).cert_store_stats()["x509_ca"] > 50
