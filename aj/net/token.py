"""Tokens: taken from the credential source of this user, kept in memory alone, renewed once when refused.

The sources are those of `azure-identity`, tried in one order: environment, workload, managed, cli. One
that is not set up is passed over. One that is set up and refused ends the search, so that a job never
runs as somebody else by accident. A source that has worked is kept for the life of the process.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol

from aj.base import redact
from aj.base.clock import Clock
from aj.base.errors import AuthError, RemoteError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.net import credentials
from aj.net.clouds import Cloud
from aj.net.credentials import NotSetUp, Refusal, Source
from aj.net.http import Bearer, Request, Response, Transport
from aj.net.origin import Origin
from aj.net.refusal import Unauthorized

EARLY_S = 300.0  # a token is not used in its last five minutes: the longest request must end before
_TOKEN = re.compile(r"[\x21-\x7e]+\Z", re.ASCII)
_CLAIMS = re.compile(r'\bclaims="(?P<claims>[A-Za-z0-9+/_=-]+)"')


@dataclass(frozen=True)
class Token:
    """A bearer token and the moment, in seconds since the epoch, at which it expires. `source` gave it."""

    value: str = field(repr=False)
    expires_at: float
    source: str


@dataclass(frozen=True)
class Person:
    """Who a token was issued to, as far as the token says. Nothing here is proof: a service decides."""

    tenant: str | None
    object_id: str | None
    name: str | None


class TokenSource(Protocol):
    """Something that has tokens."""

    def get(self, scope: str, *, tenant: str | None = None, claims: str | None = None) -> Token:
        """Return a token for a scope; `claims` asks for a new one that meets them. Raises AuthError, Unavailable."""

    def drop(self, token: Token) -> None:
        """Forget a token that was refused, wherever it is kept."""


class Tokens:
    """The tokens of one cloud. Safe between threads: who needs the same token at once waits for one request."""

    def __init__(self, cloud: Cloud, settings: Settings, clock: Clock) -> None:
        self._cloud = cloud
        self._settings = settings
        self._clock = clock
        self._names = credentials.chosen(settings)
        self._lock = threading.Lock()
        self._kept: dict[tuple[str | None, str], Token] = {}
        self._sources: dict[tuple[str, str | None], Source] = {}
        self._proven: dict[str | None, str] = {}

    def get(self, scope: str, *, tenant: str | None = None, claims: str | None = None) -> Token:
        """Return a token that is good for five more minutes. Raises AuthError naming each source and its reason."""
        with self._lock:
            kept = self._kept.get((tenant, scope))
            if kept and not claims and self._clock.now() < kept.expires_at - EARLY_S:
                return kept
            token = self._fetch(scope, tenant, claims)
            self._kept[tenant, scope] = token
            return token

    def drop(self, token: Token) -> None:
        """Forget a token and the memory of the source that gave it."""
        with self._lock:
            stale = [key for key, kept in self._kept.items() if kept == token]
            for tenant, scope in stale:
                del self._kept[tenant, scope]
                source = self._sources.pop((token.source, tenant), None)
                if source is not None:
                    source.close()

    def close(self) -> None:
        """Forget everything and hang up."""
        with self._lock:
            for source in self._sources.values():
                source.close()
            self._sources.clear()
            self._kept.clear()

    def _fetch(self, scope: str, tenant: str | None, claims: str | None) -> Token:
        reasons: dict[str, str] = {}
        proven = self._proven.get(tenant)
        for name in (proven,) if proven else self._names:
            try:
                token = self._from(name, scope, tenant, claims)
            except NotSetUp as error:
                reasons[name] = str(error)
            except Refusal as error:
                reasons[name] = str(error)
                break
            else:
                self._proven[tenant] = name
                return token
        raise self._nobody(reasons, tenant)

    def _from(self, name: str, scope: str, tenant: str | None, claims: str | None) -> Token:
        source = self._sources.get((name, tenant))
        if source is None:
            alone = len(self._names) == 1
            source = credentials.source(name, self._cloud, self._settings, tenant, alone=alone)
            self._sources[name, tenant] = source
        value, expires_at = source.token(scope, tenant=tenant, claims=claims)
        if not _TOKEN.match(value):
            raise Refusal("what it gave is no token")
        redact.hide(value)
        return Token(value, expires_at, name)

    def _nobody(self, reasons: Mapping[str, str], tenant: str | None) -> AuthError:
        where = f" for tenant {tenant}" if tenant else ""
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        hint = credentials.hint(list(reasons)[-1], tenant, self._settings)
        return AuthError(f"not signed in{where}: {listed}", hint=hint, details={"sources": dict(reasons)})


@dataclass(frozen=True)
class Signing:
    """A transport that signs what passes, for one scope and the origins where its token may go.

    A token that is refused is renewed once, and the request goes again: a refused one changed nothing.
    """

    inner: Transport
    tokens: TokenSource
    scope: str
    origins: tuple[Origin, ...]
    tenant: str | None = None

    def ask(self, request: Request) -> Response:
        """Ask, signed. Raises as the inner transport; AuthError when a new token is refused too."""
        token = self.tokens.get(self.scope, tenant=self.tenant)
        try:
            return self.inner.ask(self._signed(request, token))
        except Unauthorized as error:
            return self._again(self.inner.ask, request, token, error)

    def send(self, request: Request) -> Response:
        """Send a change, signed. Raises as the inner transport; AuthError when a new token is refused too."""
        token = self.tokens.get(self.scope, tenant=self.tenant)
        try:
            return self.inner.send(self._signed(request, token))
        except Unauthorized as error:
            return self._again(self.inner.send, request, token, error)

    def _signed(self, request: Request, token: Token) -> Request:
        return request.signed(Bearer(token.value, self.origins))

    def _again(
        self, carry: Callable[[Request], Response], request: Request, token: Token, error: Unauthorized
    ) -> Response:
        self.tokens.drop(token)
        renewed = self.tokens.get(self.scope, tenant=self.tenant, claims=wanted_claims(error.challenge))
        try:
            return carry(self._signed(request, renewed))
        except Unauthorized as again:
            again.hint = credentials.hint(renewed.source, self.tenant)
            raise


def wanted_claims(challenge: str | None) -> str | None:
    """Return the claims, as JSON text, that a WWW-Authenticate header asks for; None when it asks for none."""
    found = _CLAIMS.search(challenge or "")
    if not found:
        return None
    try:
        return _decoded(found["claims"]).decode()
    except ValueError:
        return None


def person(token: Token) -> Person:
    """Read from a token who it was issued to. Raises RemoteError when it is of a kind that does not tell."""
    try:
        claims = json.loads(_decoded(token.value.split(".")[1]))
    except (IndexError, ValueError):
        claims = None
    if not isinstance(claims, dict):
        raise RemoteError("the token does not tell who it belongs to", code="opaque-token")

    def claim(*names: str) -> str | None:
        return next((value for name in names if isinstance(value := claims.get(name), str) and value), None)

    return Person(claim("tid"), claim("oid"), claim("upn", "unique_name", "preferred_username", "appid"))


def _decoded(words: str) -> bytes:
    """Read base64 of either alphabet, with or without its padding. Raises ValueError."""
    plain = words.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
