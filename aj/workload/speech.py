"""How a replica speaks to the daemon: each request may be sent again, until it is answered or time is up.

A daemon that is replaced is away for a moment. Everything that a replica asks means the same when it is
asked twice, so a lost answer is simply asked for again, for two minutes and ever more rarely.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from aj.base.clock import Clock
from aj.base.errors import AuthError, DaemonError, UserError
from aj.base.noun import dataclass
from aj.net import uds
from aj.net.uds import Answer, Lost, Nonsense, NotSent
from aj.version import VERSION
from aj.wire import codec, errors, paths
from aj.wire.paths import Route

RIDE_S = 120.0  # a daemon that is replaced answers again within seconds; a machine under load takes longer
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
TOKEN_S = 15.0  # a token that does not hold was just renewed, or never will
SCHEME = "unix://"

T = TypeVar("T")


class Sender(Protocol):
    """What carries one request to the daemon. Raises NotSent, Lost or Nonsense."""

    def __call__(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, *, silence_s: float
    ) -> Answer: ...


@dataclass(frozen=True)
class Speech:
    """Requests of one replica. `token` reads its token anew for each of them. Safe between threads."""

    send: Sender
    token: Callable[[], str]
    clock: Clock
    ride_s: float = RIDE_S

    def ask(
        self,
        kind: type[T],
        route: Route,
        *segments: str,
        query: Mapping[str, str | int | float | None] | None = None,
        body: object = None,
        rides: bool = True,
    ) -> T:
        """Ask until there is an answer. Raises the error that the daemon answered.

        Raises DaemonError when it cannot be reached for two minutes, or at all without `rides`.
        """
        target = route.path(*segments, query=query)
        raw = None if body is None else json.dumps(codec.dump(body), separators=(",", ":")).encode("ascii")
        begun, pause_s = self.clock.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                return self._once(kind, route.method, target, raw)
            except (DaemonError, AuthError) as error:
                limit_s = TOKEN_S if isinstance(error, AuthError) else self.ride_s
                if not rides or self.clock.monotonic() - begun + pause_s > limit_s:
                    raise
            self.clock.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    def _once(self, kind: type[T], method: str, target: str, raw: bytes | None) -> T:
        """Send one request. Raises DaemonError when nobody knows what came of it, else the daemon's error."""
        headers = {paths.CLIENT: VERSION, paths.AUTHORIZATION: f"Bearer {self._token()}"}
        if raw is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = self.send(method, target, headers, raw, silence_s=paths.SILENCE_S)
            value = codec.parse(answer.body, where="answer")
        except (NotSent, Lost, Nonsense, UserError) as error:
            raise DaemonError(f"the daemon does not answer: {error}", code="unreachable") from error
        refused = errors.from_document(value)
        if refused is not None and answer.status < 500:
            raise refused
        if refused is not None:
            raise DaemonError(refused.message, code=refused.code, hint=refused.hint)
        return codec.load(kind, value, where="answer", lenient=True)

    def _token(self) -> str:
        try:
            return self.token()
        except OSError as error:
            raise DaemonError(f"the token cannot be read: {error}", code="no-token") from error


def over_socket(path: Path) -> Sender:
    """Return what sends over a Unix socket, each request over a connection of its own."""

    def send(method: str, target: str, headers: Mapping[str, str], body: bytes | None, *, silence_s: float) -> Answer:
        wire = uds.Wire(path)
        try:
            if method == "GET":
                return wire.read(target, headers, silence_s=silence_s)
            return wire.change(method, target, headers, body or b"", silence_s=silence_s)
        finally:
            wire.close()

    return send


def socket_of(url: str) -> Path:
    """Return the socket that AJ_API_URL names. Raises UserError."""
    path = Path(url.removeprefix(SCHEME))
    if not url.startswith(SCHEME) or not path.is_absolute():
        raise UserError(f"AJ_API_URL={url!r} is no `{SCHEME}/PATH`", code="bad-url")
    return path
