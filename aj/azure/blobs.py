"""The door to blob storage: one container, and the few requests by which a file comes into it, once.

Every write here carries the condition that nothing stands there yet, so each request may be repeated: what is
there already is never touched. Nothing is retried here but a token that was refused. The library is imported
with the first container, in the daemon alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar, cast

from aj.azure.datastores import Secret
from aj.azure.gauge import Gauge, Moved, Sending
from aj.base import packs, redact, text
from aj.base.errors import AjError, AuthError, ConfigError, NotFound, Refused, RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.net import credentials, proxies
from aj.net.clouds import BLOB_SCOPE
from aj.net.http import BLOB, STANDARD
from aj.net.origin import Origin
from aj.net.refusal import VAGUE, retry_after_s
from aj.net.token import Token, TokenSource, wanted_claims
from aj.version import VERSION

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential, TokenCredential
    from azure.core.exceptions import AzureError, HttpResponseError
    from azure.core.rest import HttpResponse
    from azure.storage.blob import BlobClient, ContainerClient, ContentSettings

ROLE = "Storage Blob Data Contributor"
API = "2024-11-04"
CONNECT_S = 10.0
OURS = {"aj": "1"}  # the mark by which our own blobs are known when old ones are removed
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
class SignedIn:
    """Access with the user's own token, of one tenant (None: the credential's own)."""

    tokens: TokenSource = field(repr=False)
    tenant: str | None = None


Access = SignedIn | Secret


@dataclass(frozen=True)
class Limits:
    """Seconds without a sign of life after which a request is given up: while connecting, and later."""

    connect_s: float = CONNECT_S
    stall_s: float = BLOB.seconds


@dataclass(frozen=True)
class Kept:
    """A blob of ours as a listing shows it. `etag` names this very state of it; the time is since the epoch."""

    name: str
    size_bytes: int
    modified_at: float
    etag: str


@contextlib.contextmanager
def opened(place: Place, access: Access, settings: Settings, limits: Limits | None = None) -> Iterator[Container]:
    """Reach a container for the length of a block. Nothing is sent before it is asked for something.

    Raises ConfigError when a token would leave this machine by plain http.
    """
    packs.need("cloud")
    credentials.quiet()
    known = limits or Limits()
    credential = _credential(place, access)
    gauge = Gauge(_transport(known, settings))
    client = _client(place, credential, settings, gauge)
    with client:
        yield Container(place, client, gauge, credential if isinstance(credential, _Credential) else None, known)


class Container:
    """One container. Safe between threads."""

    def __init__(
        self, place: Place, client: ContainerClient, gauge: Gauge, credential: _Credential | None, limits: Limits
    ) -> None:
        self.place = place
        self._client = client
        self._gauge = gauge
        self._credential = credential
        self._limits = limits

    def size(self, name: str) -> int | None:
        """Return the size of a blob in bytes, or None when there is none. Raises as every request here.

        Refused, AuthError, NotFound and RemoteError; Unavailable when another try may help.
        """
        blob = self._blob(name)
        # The first request of an upload: a host that does not take the call is given up soon.
        connect_s, read_s = self._limits.connect_s, min(STANDARD.seconds, self._stall_s)
        try:
            found = self._call(
                lambda: blob.get_blob_properties(connection_timeout=connect_s, read_timeout=read_s),
                f"look for blob {name}",
            )
        except NotFound:
            return None
        return int(found.size)

    def put(self, name: str, data: bytes, content_type: str, moved: Moved) -> None:
        """Put a whole blob where there is none. `moved` is told of bytes as they leave, and of those that must again.

        Raises as `size`; Refused with code `conflict` when something stands there.
        """
        blob, kind = self._blob(name), _kind(content_type)
        self._call(
            lambda: blob.upload_blob(
                data, length=len(data), overwrite=False, metadata=OURS, content_settings=kind, validate_content=True
            ),
            f"upload blob {name}",
            moved,
        )

    def staged(self, name: str) -> dict[str, int]:
        """Return the size in bytes of each block that waits, by its id; none when nobody has staged any."""
        blob = self._blob(name)
        try:
            _, waiting = self._call(lambda: blob.get_block_list("uncommitted"), f"look for blocks of blob {name}")
        except NotFound:
            return {}
        except UnicodeDecodeError:
            return {}  # ids that are no text: somebody else's
        return {str(block.id): int(block.size) for block in waiting}

    def stage(self, name: str, block: str, data: bytes, moved: Moved) -> None:
        """Stage one block. Raises as `size`."""
        blob = self._blob(name)
        self._call(
            lambda: blob.stage_block(block, data, len(data), validate_content=True),
            f"upload a part of blob {name}",
            moved,
        )

    def commit(self, name: str, blocks: Sequence[str], content_type: str) -> None:
        """Make staged blocks a blob where there is none.

        Raises as `size`; Refused with code `conflict` when something stands there, or a block is gone.
        """
        from azure.core import MatchConditions
        from azure.storage.blob import BlobBlock

        blob, kind = self._blob(name), _kind(content_type)
        self._call(
            lambda: blob.commit_block_list(
                [BlobBlock(block) for block in blocks],
                content_settings=kind,
                metadata=OURS,
                match_condition=MatchConditions.IfMissing,
            ),
            f"finish blob {name}",
        )

    def ours(self, prefix: str) -> tuple[Kept, ...]:
        """List the blobs below a prefix that bear our mark. Raises as `size`."""
        listed = self._call(
            lambda: list(self._client.list_blobs(name_starts_with=prefix, include=["metadata"])),
            f"list the blobs of container {self.place.container}",
        )
        return tuple(
            Kept(blob.name, int(blob.size), blob.last_modified.timestamp(), str(blob.etag))
            for blob in listed
            if (blob.metadata or {}).get("aj") == OURS["aj"]
        )

    def remove(self, kept: Kept) -> bool:
        """Remove a blob as it was listed; False when it has gone or changed meanwhile. Raises as `size`."""
        from azure.core import MatchConditions

        blob = self._blob(kept.name)
        try:
            self._call(
                lambda: blob.delete_blob(etag=kept.etag, match_condition=MatchConditions.IfNotModified),
                f"remove blob {kept.name}",
            )
        except NotFound:
            return False
        except Refused as error:
            if error.code != "conflict":
                raise
            return False
        return True

    @property
    def _stall_s(self) -> float:
        return self._limits.stall_s

    def _blob(self, name: str) -> BlobClient:
        return self._client.get_blob_client(name)

    def _call(self, act: Callable[[], T], doing: str, moved: Moved | None = None) -> T:
        from azure.core.exceptions import AzureError

        with self._gauge.telling(moved):
            try:
                return act()
            except AzureError as error:
                if self._credential is None or not self._credential.renew(error):
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
        return Unavailable(f"could not {doing}: {_broken(error, host, self._stall_s)}")


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

    def __init__(self, access: SignedIn) -> None:
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

    if isinstance(access, SignedIn):
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


def _client(
    place: Place,
    credential: TokenCredential | AzureNamedKeyCredential | AzureSasCredential,
    settings: Settings,
    gauge: Gauge,
) -> ContainerClient:
    from azure.storage.blob import ContainerClient

    origin = Origin.of_url(place.url)
    proxy = proxies.of(settings, origin)
    return ContainerClient(
        place.url,
        place.container,
        credential,
        api_version=API,
        user_agent=f"aj/{VERSION}",
        transport=gauge,
        proxies={origin.scheme: proxy} if proxy else {},
        retry_total=0,  # who waits and asks again is our own
        permit_redirects=False,
        max_single_put_size=2**40,  # who cuts a file into parts is our own, too
    )


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


def _kind(content_type: str) -> ContentSettings:
    from azure.storage.blob import ContentSettings

    return ContentSettings(content_type=content_type)
