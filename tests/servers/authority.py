"""A sign-in service on loopback: issues tokens to one service principal, checks what it is asked, counts.

Credentials demand https, so it has a certificate of an authority that the test made itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

import trustme

from aj.base.clock import SYSTEM
from aj.net.clouds import BLOB_SCOPE
from tests.servers.loopback import Answer, Got, Loopback, serving

CLIENT = "11111111-2222-3333-4444-555555555555"
SECRET = "planted-secret-of-a-principal"
TENANT = "aaaaaaaa-0000-0000-0000-00000000000a"
PERSON = "99999999-0000-0000-0000-000000000001"


def jwt(
    number: int, scope: str, tenant: str, person: str = PERSON, *, name: str = "ada@example.com", **more: object
) -> str:
    """A token of the right shape; its signature is none."""
    claims = {"aud": scope, "tid": tenant, "oid": person, "upn": name, "number": number, **more}
    return ".".join(_part(part) for part in ({"alg": "none", "typ": "JWT"}, claims)) + ".c2lnbmF0dXJl"


@dataclass
class Authority:
    """Who signs in here. Issued tokens are put into `tokens` with their scope, for the other servers to know."""

    tokens: dict[str, str] = field(default_factory=dict)
    lifetime_s: int = 3600
    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    refuses: bool = False
    person: str = PERSON
    knows: Callable[[str], bool] = lambda assertion: False

    def answer(self, got: Got) -> Answer:
        """Answer one request."""
        tenant, _, way = got.path.lstrip("/").partition("/")
        if got.method == "GET" and way == "v2.0/.well-known/openid-configuration":
            base = f"{self.url}/{tenant}"
            return Answer(
                200,
                {
                    "issuer": f"{base}/v2.0",
                    "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                    "token_endpoint": f"{base}/oauth2/v2.0/token",
                    "tenant_region_scope": None,
                },
            )
        if got.method != "POST" or way != "oauth2/v2.0/token":
            self.broken.append(f"{got.target}: nothing is here")
            return Answer(404, {"error": "not_found"})
        return self._token(tenant, dict(parse_qsl(got.body.decode())))

    def _token(self, tenant: str, form: dict[str, str]) -> Answer:
        self.asked.append({**form, "tenant": tenant})
        if form.get("grant_type") != "client_credentials" or not form.get("scope", "").endswith("/.default"):
            self.broken.append(f"a form that is none: {sorted(form)}")
        is_known = form.get("client_secret") == SECRET or self.knows(form.get("client_assertion", ""))
        if self.refuses or form.get("client_id") != CLIENT or not is_known:
            words = f"AADSTS7000215: Invalid client secret provided: {form.get('client_secret')}\r\nTrace ID: 1"
            return Answer(401, {"error": "invalid_client", "error_description": words})
        more = _for_blobs(self.lifetime_s) if form["scope"] == BLOB_SCOPE else {}
        token = jwt(len(self.asked), form["scope"], tenant, self.person, **more)
        self.tokens[token] = form["scope"]
        return Answer(200, {"token_type": "Bearer", "expires_in": self.lifetime_s, "access_token": token})


@contextlib.contextmanager
def signing_in(folder: Path) -> Iterator[tuple[Authority, Loopback, Path]]:
    """Serve an authority, and write the certificates to trust it by to a file."""
    ca = trustme.CA()
    bundle = folder / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    authority = Authority()
    with serving(authority.answer, context) as server:
        authority.url = server.url
        yield authority, server, bundle
    if authority.broken:
        raise AssertionError("\n".join(authority.broken))


def _for_blobs(lifetime_s: int) -> dict[str, object]:
    """What the emulator of blob storage looks at: whom a token is for, from whom, and until when."""
    now = int(SYSTEM.now())
    issuer = "https://sts.windows.net/t/"
    return {
        "aud": "https://storage.azure.com",
        "iss": issuer,
        "iat": now,
        "nbf": now - 60,
        "exp": now + lifetime_s,
    }


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
