"""Registries of images: which content a tag stands for just now, asked over the registry API.

Nothing is pulled. A registry that wants to know who asks names a place that gives tokens; who this user is
there, stands in the files of `podman login` and `docker login`. On the loopback interface a registry is spoken
to without TLS, as every program of containers does.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from urllib.parse import urlencode

from aj.base.errors import AuthError, NotFound, Refused, RemoteError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.image import HUB, Image
from aj.net import document, keyring
from aj.net.http import QUICK, Request, Response, Transport
from aj.net.keyring import Login
from aj.net.origin import Origin

HUB_HOST = "registry-1.docker.io"
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)
_PARAMETER = re.compile(r'([a-z]+)="([^"]*)"', re.ASCII)
ARCHITECTURES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Registry:
    """Answers what tags mean. `machine` is the architecture that an image has to be there for, as in `amd64`."""

    transport: Transport
    settings: Settings
    machine: str = ARCHITECTURES.get(platform.machine(), platform.machine())

    def digest(self, image: Image) -> str:
        """Return the digest of what a reference stands for: of the index where there are several platforms.

        Raises NotFound when there is no such image, AuthError when the registry does not give it to this user,
        Refused when it is not for machines like this one, Unavailable when the registry cannot be asked.
        """
        answer, access = self._manifest(image, "HEAD", None)
        digest = answer.header("docker-content-digest") or ""
        kind = (answer.header("content-type") or "").partition(";")[0].strip()
        if _DIGEST.match(digest) and kind not in INDEXES:
            return digest
        answer, _ = self._manifest(image, "GET", access)
        found = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
        if digest and digest != found:
            raise RemoteError(f"{image}: the registry says {digest}, and what it sends is {found}", code="bad-digest")
        if kind in INDEXES:
            self._check_platform(image, answer.body)
        return found

    def _manifest(self, image: Image, method: str, access: str | None) -> tuple[Response, str | None]:
        """Ask for a manifest, once more with what opens the registry when that is due; return it with what worked."""
        answer = self.transport.ask(_request(image, method, access))
        if answer.status == 401 and access is None:
            access = self._access(image, answer.header("www-authenticate") or "")
            answer = self.transport.ask(_request(image, method, access))
        if answer.status in (401, 403):
            raise _not_given(image)
        if answer.status == 404:
            hint = "its name, its tag, and whether it was pushed"
            raise NotFound(f"there is no image {image}", code="no-image", hint=hint)
        return answer, access

    def _access(self, image: Image, challenge: str) -> str:
        """Return the Authorization that opens the registry, by its own words. Raises AuthError."""
        scheme, _, rest = challenge.partition(" ")
        login = keyring.find(self.settings, image.registry)
        if scheme.lower() == "basic":
            if login is None:
                raise _not_given(image)
            return login.basic
        asked = dict(_PARAMETER.findall(rest))
        if scheme.lower() != "bearer" or "realm" not in asked:
            words = f"{image.registry} asks for a sign-in of a kind nobody knows: {scheme}"
            raise RemoteError(words, code="bad-challenge")
        return f"Bearer {self._token(image, asked, login)}"

    def _token(self, image: Image, asked: Mapping[str, str], login: Login | None) -> str:
        scope = asked.get("scope") or f"repository:{image.repository}:pull"
        query = {"service": asked.get("service", ""), "scope": scope}
        doing = f"sign in to {image.registry}"
        realm = asked["realm"]
        if login is not None and not Origin.of_url(realm).is_private_enough:
            raise AuthError(f"{image.registry} wants its password sent without TLS", code="not-signed-in")
        if login is not None and login.identity_token:
            body = {**query, "grant_type": "refresh_token", "refresh_token": login.identity_token}
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            request = Request("POST", realm, doing, form, urlencode(body).encode(), QUICK, expects=(400, 401, 403))
        else:
            headers = {"Authorization": login.basic} if login else {}
            request = Request("GET", f"{realm}?{urlencode(query)}", doing, headers, limit=QUICK, expects=(401, 403))
        answer = self.transport.ask(request)
        if answer.status >= 300:
            raise _not_given(image)
        told = document.of(answer, request)
        return told.text("token") or told.need_text("access_token")

    def _check_platform(self, image: Image, body: bytes) -> None:
        """Refuse an image that is for other machines alone."""
        there = [_platform(entry) for entry in _entries(body)]
        known = sorted({word for word in there if word})
        if known and f"linux/{self.machine}" not in known:
            raise Refused(
                f"{image} is for {', '.join(known)}, and this machine is linux/{self.machine}", code="wrong-platform"
            )


def _request(image: Image, method: str, access: str | None) -> Request:
    reference = image.digest or image.tag
    url = f"{_origin(image)}/v2/{image.repository}/manifests/{reference}"
    headers = {"Accept": ", ".join((*INDEXES, *MANIFESTS)), **({"Authorization": access} if access else {})}
    return Request(method, url, f"look up the image {image}", headers, limit=QUICK, expects=(401, 403, 404))


def _origin(image: Image) -> Origin:
    origin = Origin.parse(HUB_HOST if image.registry == HUB else image.registry)
    return Origin("http", origin.host, origin.port if ":" in image.registry else 80) if origin.is_loopback else origin


def _not_given(image: Image) -> AuthError:
    return AuthError(
        f"{image.registry} does not give {image.repository} to this user",
        code="image-unauthorized",
        hint=f"`podman login {image.registry}`",
    )


def _entries(body: bytes) -> list[object]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return []
    entries = found.get("manifests") if isinstance(found, dict) else None
    return entries if isinstance(entries, list) else []


def _platform(entry: object) -> str | None:
    known = entry.get("platform") if isinstance(entry, dict) else None
    if not isinstance(known, dict) or known.get("os") == "unknown":
        return None  # an attestation, not something that runs
    return f"{known.get('os')}/{known.get('architecture')}"
