"""The line to a storage account: by whose right, over which way, and what its answers mean as our errors.

Nothing is retried here but a token that was refused, once. The library is imported with the first line, in the
daemon alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from aj.azure.datastores import Secret
from aj.azure.gauge import Gauge, Moved, Sending
from aj.base import packs, redact, text
from aj.base.errors import AjError, AuthError, ConfigError, NotFound, Refused, RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.net import credentials, proxies
from aj.net.clouds import BLOB_SCOPE
from aj.net.http import BLOB
from aj.net.origin import Origin
from aj.net.refusal import VAGUE, retry_after_s
from aj.net.token import Token, TokenSource, wanted_claims
from aj.version import VERSION

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
    from azure.core.exceptions import AzureError, HttpResponseError
    from azure.core.rest import HttpResponse

ROLE = "Storage Blob Data Contributor"
API = "2024-11-04"
CONNECT_S = 10.0
SHOWN = 300  # characters of a service's own words
# A damaged body on the way, told by the service: the same body may arrive whole the next time.
_DAMAGED = frozenset({"Md5Mismatch", "InvalidMd5", "Crc64Mismatch", "InvalidCrc64"})
LOST_BLOCKS = "InvalidBlockList"
T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A container. `url` is the base address of its account, without a final slash."""

    account: str
    container: str
    url: str


@dataclass(frozen=True)
class ByToken:
    """Access with the user's own token, of one tenant (None: the credential's own)."""

    tokens: TokenSource = field(repr=False)
    tenant: str | None = None


Access = ByToken | Secret


@dataclass(frozen=True)
class Limits:
    """Seconds without a sign of life after which a request is given up: while connecting, and later."""

    connect_s: float = CONNECT_S
    stall_s: float = BLOB.seconds


class Options(TypedDict):
    """What every client of the library is made with."""

    api_version: str
    user_agent: str
    transport: Gauge
    proxies: dict[str, str]
    retry_total: int
    permit_redirects: bool


class Line:
    """How the library reaches one account. Safe between threads."""

    def __init__(self, place: Place, access: Access, settings: Settings, limits: Limits | None = None) -> None:
        """Raises ConfigError when a token would leave this machine by plain http."""
        packs.need("cloud")
        credentials.quiet()
        self.place = place
        self.limits = limits or Limits()
        self._settings = settings
        self.credential = _credential(place, access)
        self._gauge = Gauge(_transport(self.limits, settings))

    def options(self) -> Options:
        """Return what every client of the library is made with."""
        origin = Origin.of_url(self.place.url)
        proxy = proxies.of(self._settings, origin)
        return {
            "api_version": API,
            "user_agent": f"aj/{VERSION}",
            "transport": self._gauge,
            "proxies": {origin.scheme: proxy} if proxy else {},
            "retry_total": 0,  # who waits and asks again is our own
            "permit_redirects": False,
        }

    def call(self, act: Callable[[], T], doing: str, moved: Moved | None = None) -> T:
        """Carry out one call of the library. `moved` is told of bytes as they leave; `doing` completes "could not …".

        Raises Refused, AuthError, NotFound and RemoteError; Unavailable when another try may help.
        """
        from azure.core.exceptions import AzureError

        with self._gauge.telling(moved):
            try:
                return act()
            except AzureError as error:
                if not isinstance(self.credential, _Credential) or not self.credential.renew(error):
                    raise self._ours(error, doing) from error
            try:
                return act()
            except AzureError as error:
                raise self._ours(error, doing) from error

    def _ours(self, error: AzureError, doing: str) -> AjError:
        from azure.core.exceptions import HttpResponseError

        if isinstance(error, HttpResponseError) and error.response is not None:
            return _refusal(error, doing, self.place.account)
        host = Origin.of_url(self.place.url).netloc
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            hint = "name your own authority's certificates by `export SSL_CERT_FILE=/path/ca.pem`"
            words = f"could not {doing}: the certificate of {host} is not trusted"
            return Unavailable(words, code="untrusted", hint=hint)
        return Unavailable(f"could not {doing}: {_broken(error, host, self.limits.stall_s)}")


# What the service says


def _refusal(error: HttpResponseError, doing: str, account: str) -> AjError:
    """Return the error that an answer stands for."""
    response = cast("HttpResponse", error.response)
    status, headers = response.status_code, response.headers
    code = str(getattr(getattr(error, "error_code", None), "value", None) or headers.get("x-ms-error-code") or "")
    found = {
        "status": status,
        "remote_code": code or None,
        "request_id": headers.get("x-ms-request-id"),
        "retry_after_s": retry_after_s({"retry-after": headers.get("Retry-After") or ""}, 0.0),
    }
    details = {name: value for name, value in found.items() if value is not None}
    what = f"could not {doing}: {_sentence(error, status, code)}"
    if status == 401:
        return AuthError(what, details=details)
    if status == 403:
        words, hint = _forbidden(code, account)
        return Refused(words, code="forbidden", hint=hint, details=details)
    if status == 404:
        return NotFound(what, details=details)
    if status in (409, 412) or code == LOST_BLOCKS:
        return Refused(what, code="conflict", details=details)
    if status in VAGUE or status == 429 or code in _DAMAGED:
        return Unavailable(what, details=details)
    return RemoteError(what, details=details)


def _forbidden(code: str, account: str) -> tuple[str, str]:
    """Say what is missing, and what would help."""
    role = f"role {ROLE} on {account}"
    if code == "AuthorizationFailure":
        return f"account {account} does not let us in", f"ask its owner to allow this network, and for the {role}"
    if code == "KeyBasedAuthenticationNotPermitted":
        return f"account {account} takes no account keys", role
    if code == "AuthenticationFailed":
        return f"account {account} did not accept what we signed with", role
    return f"no right to write blobs in account {account}", role


def _sentence(error: HttpResponseError, status: int, code: str) -> str:
    """The service's code and the first line of its words, secrets taken out."""
    lines = str(error.message or "").strip().splitlines()
    words = redact.text(text.visible(lines[0]))[:SHOWN].rstrip(".") if lines else ""
    return ": ".join(part for part in (code or f"status {status}", words) if part)


def _broken(error: AzureError, host: str, stall_s: float) -> str:
    from azure.core import exceptions

    if isinstance(error, exceptions.ServiceRequestTimeoutError):
        return f"{host} did not take the call in time"
    if isinstance(error, exceptions.ServiceResponseTimeoutError) or "timed out" in str(error):
        return f"nothing moved for {stall_s:g} s on the way to {host}"
    if isinstance(error, exceptions.ServiceRequestError):
        return f"{host} cannot be reached"
    return f"the connection to {host} broke"


# How we get in


class _Credential:
    """Our tokens, as the library asks for them. Whatever scope it names, it gets the one of blob storage."""

    def __init__(self, access: ByToken) -> None:
        self._access = access
        self._given: dict[str, Token] = {}

    def get_token(self, *scopes: str, **options: object) -> AccessToken:
        """Return a token."""
        from azure.core.credentials import AccessToken

        return self._kept(self._access.tokens.get(BLOB_SCOPE, tenant=self._access.tenant), AccessToken)

    def renew(self, error: AzureError) -> bool:
        """Take a new token when this error means that the old one was refused; True when there is one."""
        response = getattr(error, "response", None)
        if response is None or response.status_code != 401:
            return False
        sent = str(response.request.headers.get("Authorization") or "").partition(" ")[2]
        refused = self._given.pop(sent, None)
        if refused is not None:
            self._access.tokens.drop(refused)
        claims = wanted_claims(response.headers.get("WWW-Authenticate"))
        self._access.tokens.get(BLOB_SCOPE, tenant=self._access.tenant, claims=claims)
        return True

    def _kept(self, token: Token, made: type[AccessToken]) -> AccessToken:
        self._given[token.value] = token
        return made(token.value, int(token.expires_at))


def _credential(place: Place, access: Access) -> _Credential | AzureNamedKeyCredential | AzureSasCredential:
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    if isinstance(access, ByToken):
        if not place.url.startswith("https://"):
            raise ConfigError(
                f"{place.url} is plain http, and a token goes by https alone",
                hint="give `blob_endpoint` an https address",
            )
        return _Credential(access)
    redact.hide(access.value)
    if access.kind.lower() == "sas":
        return AzureSasCredential(access.value.removeprefix("?"))
    return AzureNamedKeyCredential(place.account, access.value)


def _transport(limits: Limits, settings: Settings) -> Sending:
    from azure.core.pipeline.transport import RequestsTransport

    _, bundle = proxies.bundle(settings)

    # While a body leaves, the library applies the limit of connecting to each of its small pieces.
    made: Sending = RequestsTransport(
        connection_timeout=limits.stall_s,
        read_timeout=limits.stall_s,
        connection_verify=bundle or True,
        use_env_settings=False,
    )
    return made
