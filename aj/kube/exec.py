"""Programs run inside pods: their input, output and end, over one WebSocket to the API server.

The server speaks of channels: one for what goes in, two for what comes out, one for how it ended. Bytes arrive as
they were sent. Only the newer of the two protocols can end the input, so a program that must work with both is told
beforehand how much will come. Nothing is repeated here: a program may have been run.
"""

from __future__ import annotations

import contextlib
import json
import select
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, cast
from urllib.parse import urlencode, urlsplit

import websocket
from websocket import ABNF, WebSocket

from aj.base import redact, text
from aj.base.clock import Clock
from aj.base.errors import AjError, RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.kube import errors
from aj.kube.errors import Asked
from aj.kube.resources import EXEC, PODS
from aj.model.json import Json

if TYPE_CHECKING:
    from kubernetes.client.configuration import Configuration

    from aj.kube.client import Cluster

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
PIECE = 32 * 1024  # bytes of input in one message, as `kubectl` sends them
CONNECT_S = 30.0  # until the server has taken the call; it first calls the node
LOOK_S = 0.25  # how long one look at a silent line takes at most
KEPT = 8 * 1024  # bytes of what a program said on stderr that are kept for an error
ALIVE_S = 30.0  # a line without traffic is cut by gateways after minutes
T = TypeVar("T")


@dataclass(frozen=True)
class Heard:
    """What a program wrote since it was last asked."""

    out: bytes = b""
    err: bytes = b""


@dataclass(frozen=True)
class Ended:
    """How a program ended. `code` None means that the cluster could not run it, and `words` say why."""

    code: int | None
    words: str = ""


@dataclass(frozen=True)
class Finished:
    """What a program left that ran to its end."""

    code: int
    out: bytes
    err: bytes


class _Line(Protocol):
    """What is asked of the connection itself."""

    def fileno(self) -> int: ...

    def send(self, data: bytes | bytearray) -> int: ...


class Stream:
    """One program in a pod. For one thread. Close it in any case: `with contextlib.closing(…)`."""

    def __init__(self, socket: WebSocket, protocol: str, clock: Clock) -> None:
        socket.settimeout(0)
        self.protocol = protocol
        self.ended: Ended | None = None
        self._socket = socket
        self._line = cast(_Line, socket.sock)
        self._clock = clock
        self._out = bytearray()
        self._parts = bytearray()  # of a message that comes in several frames
        self._why: str | None = None  # the line is no more
        self._heard_at = clock.monotonic()

    @property
    def unsent(self) -> int:
        """How many bytes wait here for the line to take them."""
        return len(self._out)

    def write(self, data: bytes) -> None:
        """Hand over input. It leaves while `poll` is called."""
        for at in range(0, len(data), PIECE):
            self._say(bytes([STDIN]) + data[at : at + PIECE])

    def end_input(self) -> bool:
        """End the input, if the protocol can say so."""
        if self.protocol == V5:
            self._say(bytes([CLOSE, STDIN]))
        return self.protocol == V5

    def poll(self, wait_s: float = LOOK_S) -> Heard:
        """Move bytes both ways, waiting at most `wait_s` for something to move, and return what came.

        Sets `ended` when the end was told. Raises Unavailable when the line broke before that.
        """
        if self._why is not None:
            if self.ended is None:
                raise broken(self._why)
            return Heard()
        out, err = bytearray(), bytearray()
        try:
            self._wait(wait_s)
            self._send()
            while self._why is None and (frame := self._receive()) is not None:
                self._take(frame, out, err)
        except (OSError, websocket.WebSocketException) as error:
            self._why = str(error)  # told the next time: what came before it counts
        return Heard(bytes(out), bytes(err))

    def close(self) -> None:
        """Hang up, whatever the program does."""
        self._why = "it was hung up here"
        with contextlib.suppress(OSError):  # the other side was faster
            self._socket.shutdown()  # type: ignore[no-untyped-call]

    def _say(self, payload: bytes) -> None:
        self._out += ABNF.create_frame(payload, ABNF.OPCODE_BINARY).format()

    def _wait(self, wait_s: float) -> None:
        """Wait until the line can be read, or written when something is to be sent."""
        now = self._clock.monotonic()
        if now - self._heard_at >= ALIVE_S and not self._out:
            self._heard_at = now
            self._control(ABNF.OPCODE_PING)
        if isinstance(self._line, ssl.SSLSocket) and self._line.pending():
            return
        watch = select.poll()
        watch.register(self._line, select.POLLIN | (select.POLLOUT if self._out else 0))
        watch.poll(wait_s * 1000)

    def _send(self) -> None:
        while self._out:
            sent = _unless_blocked(lambda: self._line.send(self._out[: 4 * PIECE]))
            if sent is None:
                return
            del self._out[:sent]

    def _receive(self) -> ABNF | None:
        frame = _unless_blocked(self._socket.recv_frame)
        if frame is not None:
            self._heard_at = self._clock.monotonic()
        return frame

    def _control(self, opcode: int, payload: bytes = b"") -> None:
        self._out += ABNF.create_frame(payload, opcode).format()

    def _take(self, frame: ABNF, out: bytearray, err: bytearray) -> None:
        data = cast(bytes, frame.data)
        if frame.opcode == ABNF.OPCODE_CLOSE:
            self._why = "the server hung up"
        elif frame.opcode == ABNF.OPCODE_PING:
            self._control(ABNF.OPCODE_PONG, data)
        elif frame.opcode != ABNF.OPCODE_PONG:
            self._parts += data
            if frame.fin:
                message, self._parts = bytes(self._parts), bytearray()
                self._hear(message, out, err)

    def _hear(self, message: bytes, out: bytearray, err: bytearray) -> None:
        channel, data = message[:1], message[1:]
        if channel == bytes([STDOUT]):
            out += data
        elif channel == bytes([STDERR]):
            err += data
        elif channel == bytes([STATUS]) and data:
            self.ended = _ended(data)


def start(
    cluster: Cluster,
    pod: str,
    argv: Sequence[str],
    *,
    namespace: str,
    container: str | None = None,
    connect_s: float = CONNECT_S,
) -> Stream:
    """Start a program in a pod, with its input open.

    Raises Refused without the right or when the pod does not let it, NotFound without such a pod, AuthError,
    Unavailable when another try may help.
    """
    asked = Asked(f"run a program in pod {pod}", "get", EXEC, namespace, cluster.access.user.name)
    query = [("command", word) for word in argv]
    query += [("container", container)] if container else []
    query += [(channel, "true") for channel in ("stdin", "stdout", "stderr")]
    configuration = cluster.configuration()
    url = f"{configuration.host}{PODS.path(namespace, pod, 'exec')}?{urlencode(query)}"
    socket = _dial(configuration, "ws" + url.removeprefix("http"), asked, cluster.clock, connect_s)
    return Stream(socket, socket.subprotocol or V4, cluster.clock)


def run(
    cluster: Cluster,
    pod: str,
    argv: Sequence[str],
    *,
    namespace: str,
    container: str | None = None,
    limit_s: float = 60.0,
) -> Finished:
    """Run a program without input to its end. Raises as `start`, and Unavailable when it takes too long.

    Raises RemoteError when the cluster could not run it.
    """
    until = cluster.clock.monotonic() + limit_s
    out, err = bytearray(), bytearray()
    with contextlib.closing(start(cluster, pod, argv, namespace=namespace, container=container)) as stream:
        stream.end_input()
        while stream.ended is None:
            if cluster.clock.monotonic() > until:
                raise Unavailable(f"{argv[0]} in pod {pod} did not end within {limit_s:g} s", code="too-long")
            heard = stream.poll()
            out += heard.out
            err += heard.err
    return Finished(checked(stream.ended, pod), bytes(out), bytes(err[-KEPT:]))


def succeeded(done: Finished, doing: str) -> bytes:
    """Return what a program wrote that ended well. Raises RemoteError; `doing` completes "could not …"."""
    if done.code == 0:
        return done.out
    words = _shown(text.decoded(done.err)) or f"the program there ended with {done.code}"
    raise RemoteError(f"could not {doing}: {words}", code="not-done")


def checked(ended: Ended, pod: str) -> int:
    """Return the code of a program that ended. Raises RemoteError when the cluster could not run it."""
    if ended.code is None:
        raise RemoteError(f"pod {pod} could not run the program: {ended.words}", code="not-run")
    return ended.code


def broken(why: str) -> Unavailable:
    """Say that the line to a program in a pod broke."""
    words = redact.text(text.visible(why)) or "the server hung up"
    return Unavailable(f"the line to the pod broke: {words}", code="line-broke")


def _ended(data: bytes) -> Ended:
    """Read what the cluster says of the end of a program."""
    try:
        found: Json = json.loads(data)
    except ValueError:
        return Ended(None, _shown(text.decoded(data)))
    if not isinstance(found, dict):
        return Ended(None, _shown(text.decoded(data)))
    if found.get("status") == "Success":
        return Ended(0)
    details = found.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else []:
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode" and str(cause.get("message")).isdigit():
            return Ended(int(str(cause["message"])), _shown(str(found.get("message") or "")))
    return Ended(None, _shown(str(found.get("message") or found.get("reason") or "it does not say why")))


def _shown(words: str) -> str:
    return " ".join(redact.text(text.visible(words)).split())[:1000]


def _unless_blocked(act: Callable[[], T]) -> T | None:
    """Do something to a line that never waits; None when it would have to."""
    try:
        return act()
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None


# How the server is called


def _dial(configuration: Configuration, url: str, asked: Asked, clock: Clock, connect_s: float) -> WebSocket:
    header = configuration.api_key.get("authorization")
    socket = websocket.WebSocket(sslopt=_trust(configuration), skip_utf8_validation=True)
    try:
        socket.connect(  # type: ignore[no-untyped-call]
            url,
            header=[f"Authorization: {header}"] if header else [],
            subprotocols=[V5, V4],
            timeout=connect_s,
            redirect_limit=0,
            suppress_origin=True,
            **_proxy(configuration),
        )
    except websocket.WebSocketBadStatusException as error:
        headers = {name.lower(): value for name, value in (error.resp_headers or {}).items()}
        raise errors.error(asked, error.status_code, headers, error.resp_body or b"", clock.now()) from error
    except (OSError, websocket.WebSocketException) as error:
        raise _unreached(configuration, asked, error) from error
    return socket


def _trust(configuration: Configuration) -> dict[str, object]:
    found: dict[str, object] = {"cert_reqs": ssl.CERT_NONE}
    if configuration.verify_ssl:
        found = {"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": configuration.ssl_ca_cert}
    else:
        found["check_hostname"] = False
    names = {"certfile": "cert_file", "keyfile": "key_file", "server_hostname": "tls_server_name"}
    given = {word: getattr(configuration, name) for word, name in names.items()}
    return {**found, **{word: value for word, value in given.items() if value}}


def _proxy(configuration: Configuration) -> dict[str, object]:
    """The way out; without one the library is kept from looking for one in the environment."""
    if not configuration.proxy:
        return {"http_no_proxy": ["*"]}
    way = urlsplit(configuration.proxy)
    signed = {"http_proxy_auth": (way.username, way.password or "")} if way.username else {}
    port = way.port or (443 if way.scheme == "https" else 80)
    return {"http_proxy_host": way.hostname, "http_proxy_port": port, "proxy_type": "http", **signed}


def _unreached(configuration: Configuration, asked: Asked, error: Exception) -> AjError:
    host = urlsplit(str(configuration.host)).netloc
    if isinstance(error, ssl.SSLCertVerificationError):
        return Unavailable(f"could not {asked.doing}: the certificate of {host} is not trusted", code="untrusted")
    words = redact.text(text.visible(str(error))) or type(error).__name__
    return Unavailable(f"could not {asked.doing}: {host} does not take the call: {words}")
