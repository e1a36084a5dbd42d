"""The one connection pool of the daemon: a request goes out here and nowhere else.

A change leaves over a connection of its own, so that an idle one, closed by the other side meanwhile,
can never make its outcome doubtful; questions share kept ones. Whether a failed change may have
happened is read off the request's body: the library asks for it only once the head was handed to the
system, so a body that was never asked for means that no whole request ever left.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import http.client
import io
import socket
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import certifi
import urllib3
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    SSLError,
    TimeoutError,
)

from aj.base import redact
from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, ConfigError, OutcomeUnknown, RemoteError, Unavailable
from aj.base.settings import Settings
from aj.net import proxies, refusal
from aj.net.http import NO_HOST, Request, Response, refuse_strangers
from aj.version import VERSION

if TYPE_CHECKING:
    from typing_extensions import Buffer
    from urllib3._base_connection import BaseHTTPConnection, BaseHTTPSConnection

C = TypeVar("C")

CONNECT_S = 10.0
KEPT = 16  # connections to one host: as many as the widest fan-out uses at once
MAX_BODY = 64 * 1024 * 1024  # the largest legal page is far below; more would be somebody's mistake
CHUNK = 64 * 1024


class _Told(io.BytesIO):
    """A body that remembers whether it was asked for."""

    was_asked = False

    def read(self, size: int | None = -1, /) -> bytes:
        self.was_asked = True
        return super().read(size)


class _TooLarge(HTTPError):
    """More than MAX_BODY came."""


class _Until(threading.local):
    """When the answer that this thread reads must be whole, by its clock; None while there is no such limit."""

    clock: Clock | None = None
    at: float | None = None


_UNTIL = _Until()


class _Arrivals(io.RawIOBase):
    """What arrives at a socket. The clock is looked at before each arrival, however small they are."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock
        self._silence_s = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int | None:
        if _UNTIL.clock is not None and _UNTIL.at is not None:
            left_s = _UNTIL.at - _UNTIL.clock.monotonic()
            if left_s <= 0:
                raise builtins.TimeoutError("the answer took too long")
            self._sock.settimeout(left_s if self._silence_s is None else min(left_s, self._silence_s))
        try:
            return self._raw.readinto(buffer)
        finally:
            self._sock.settimeout(self._silence_s)  # the next request over it begins with its own time

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer of which no part, be it a line of its head, can outlast the limit."""

    def __init__(self, sock: socket.socket, *words: Any, **more: Any) -> None:
        super().__init__(sock, *words, **more)
        self.fp = io.BufferedReader(_Arrivals(self.fp.detach(), sock))


class _PlainPool(HTTPConnectionPool):
    def _new_conn(self) -> BaseHTTPConnection:
        return _read_by_the_clock(super()._new_conn())


class _SecurePool(HTTPSConnectionPool):
    def _new_conn(self) -> BaseHTTPSConnection:
        return _read_by_the_clock(super()._new_conn())


def _read_by_the_clock(connection: C) -> C:
    """Let a new connection make answers of our kind. Whatever class it has: tapes put in one of their own."""
    connection.response_class = _Answer  # type: ignore[attr-defined]
    return connection


_POOLS = {"http": _PlainPool, "https": _SecurePool}


class Pool:
    """A transport that tries once. Safe between threads.

    `dial` makes the connections where certificates and proxy are not those of the settings.
    """

    def __init__(self, settings: Settings, clock: Clock, dial: Callable[[], urllib3.PoolManager] | None = None) -> None:
        self._clock = clock
        self._dial = dial
        self._settings = settings
        self._kept: dict[tuple[bool, str | None], urllib3.PoolManager] = {}

    def ask(self, request: Request) -> Response:
        """Ask over a kept connection. Raises as Transport says; ConfigError for a wrong proxy or bundle."""
        way = self._way(request)
        manager = self._kept.get(way) or self._kept.setdefault(way, self._manager(*way))
        return self._exchange(manager, request, once=False)

    def send(self, request: Request) -> Response:
        """Send over a connection of its own. Raises as `ask`, and OutcomeUnknown."""
        with self._manager(*self._way(request)) as manager:
            return self._exchange(manager, request, once=True)

    def close(self) -> None:
        """Hang up every kept connection."""
        for manager in self._kept.values():
            manager.clear()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _way(self, request: Request) -> tuple[bool, str | None]:
        """Tell whether a request needs a secure connection, and its proxy."""
        if self._dial is not None:
            return True, None
        return request.origin.scheme == "https", proxies.of(self._settings, request.origin)

    def _manager(self, is_secure: bool, proxy: str | None) -> urllib3.PoolManager:
        manager = self._dialed(is_secure, proxy)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def _dialed(self, is_secure: bool, proxy: str | None) -> urllib3.PoolManager:
        if self._dial is not None:
            return self._dial()
        tls = self._tls if is_secure or (proxy or "").startswith("https:") else None
        if proxy is None:
            return urllib3.PoolManager(maxsize=KEPT, ssl_context=tls)
        headers = proxies.headers(proxy)
        return urllib3.ProxyManager(proxy, maxsize=KEPT, ssl_context=tls, proxy_headers=headers)

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        return _trust(self._settings)

    def _exchange(self, manager: urllib3.PoolManager, request: Request, *, once: bool) -> Response:
        refuse_strangers(request)
        body = _Told(request.body or b"")
        headers = _headers(request)
        try:
            status, found, answer = self._whole(manager, request, headers, body if once or request.body else None)
        except _TooLarge as error:
            problem = f"the answer is larger than {MAX_BODY >> 20} MiB"
            raise self._lost(request, headers, problem) if once else _failed(request, problem) from error
        except HTTPError as error:
            if once and body.was_asked:
                raise self._lost(request, headers, _reason(error, request)) from error
            raise _unreachable(error, request) from error
        if status < 300 or status in request.expects:
            return Response(status, found, answer)
        raise refusal.error(request, status, found, answer, now=self._clock.now(), once=once)

    def _whole(
        self, manager: urllib3.PoolManager, request: Request, headers: Mapping[str, str], body: _Told | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send the request and read the whole answer within its limit."""
        limit = request.limit
        until = None if limit.stall else self._clock.monotonic() + CONNECT_S + limit.seconds
        with self._ending(until):
            response = manager.request(
                request.method,
                request.url,
                body=body,
                headers=dict(headers),
                timeout=urllib3.Timeout(connect=CONNECT_S, read=limit.seconds),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            with contextlib.closing(response):  # whole, its connection is back already; cut short, it is of no use
                is_read = request.is_answer_read or response.status >= 300
                answer = self._read(response, until) if is_read else b""
        return response.status, {name.lower(): value for name, value in response.headers.items()}, answer

    @contextlib.contextmanager
    def _ending(self, until: float | None) -> Iterator[None]:
        """Let every read of this thread in the block end at a moment."""
        _UNTIL.clock, _UNTIL.at = self._clock, until
        try:
            yield
        finally:
            _UNTIL.clock = _UNTIL.at = None

    def _read(self, response: urllib3.BaseHTTPResponse, until: float | None) -> bytes:
        pieces = bytearray()
        for piece in response.stream(CHUNK, decode_content=True):
            pieces += piece
            if len(pieces) > MAX_BODY:
                raise _TooLarge("too large")
            if until is not None and self._clock.monotonic() > until:
                raise TimeoutError("the answer took too long")
        return bytes(pieces)

    def _lost(self, request: Request, headers: Mapping[str, str], reason: str) -> OutcomeUnknown:
        details = {"request_id": headers["x-ms-client-request-id"], "at": rfc3339(self._clock.now())}
        words = f"whether it worked to {request.doing} is not known: {reason}"
        return OutcomeUnknown(words, details=details)


def _headers(request: Request) -> dict[str, str]:
    headers = {
        "User-Agent": f"aj/{VERSION}",
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "x-ms-client-request-id": str(uuid.uuid4()),
        **request.headers,
    }
    if request.body is not None or request.method not in ("GET", "HEAD"):
        headers["Content-Length"] = str(len(request.body or b""))
    if request.bearer is not None:
        headers["Authorization"] = f"Bearer {request.bearer.token}"
    return headers


def _trust(settings: Settings) -> ssl.SSLContext:
    """Return how to trust servers: the bundle that is named, else the system's, else the one that came along."""
    name, bundle = proxies.bundle(settings)
    known = ssl.get_default_verify_paths()
    if bundle is None and not (known.cafile or known.capath):
        bundle = certifi.where()  # a Python that was built elsewhere and does not know this system
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:  # an SSLError is one too
        raise ConfigError(f"{name}={bundle}: no certificates can be read there: {error}") from error


def _unreachable(error: HTTPError, request: Request) -> AjError:
    """Return the error of a request that brought no answer and changed nothing."""
    hint = None
    code = Unavailable.default_code
    if _is_untrusted(error):
        code, hint = "untrusted", "name your own authority's certificates by `export SSL_CERT_FILE=/path/ca.pem`"
    if isinstance(error, NameResolutionError):
        code, hint = NO_HOST, "is the name right, and this machine connected? `aj doctor` shows the proxies"
    return Unavailable(f"could not {request.doing}: {_reason(error, request)}", code=code, hint=hint)


def _failed(request: Request, problem: str) -> RemoteError:
    return RemoteError(f"could not {request.doing}: {problem}")


def _is_untrusted(error: HTTPError) -> bool:
    return isinstance(error, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error)


def _reason(error: HTTPError, request: Request) -> str:
    host = request.origin.netloc
    if isinstance(error, ProxyError):
        return f"the proxy did not connect to {host}: {redact.text(str(error.original_error))}"
    if isinstance(error, NameResolutionError):
        return f"there is no host {host}, or no network"
    if isinstance(error, NewConnectionError):
        return f"{host} cannot be reached"
    if isinstance(error, ConnectTimeoutError):
        return f"{host} did not take the call within {CONNECT_S:g} s"
    if _is_untrusted(error):
        return f"the certificate of {host} is not trusted"
    if isinstance(error, SSLError):
        return f"no secure connection to {host}"
    if isinstance(error, TimeoutError):
        return f"{host} gave no whole answer within {request.limit.seconds:g} s"
    return f"the connection to {host} broke"
