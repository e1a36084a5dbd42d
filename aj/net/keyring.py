"""Who this user is to a registry of images: the files that `podman login`, `docker login` and `az acr login` write."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from aj.base import paths
from aj.base.noun import dataclass
from aj.base.settings import Settings

# One registry goes by several names in these files.
HUB_NAMES = ("docker.io", "index.docker.io", "https://index.docker.io/v1/", "registry-1.docker.io")


@dataclass(frozen=True)
class Login:
    """A name with its password, or a token that stands for both."""

    user: str
    password: str = field(repr=False)
    identity_token: str | None = field(default=None, repr=False)

    @property
    def basic(self) -> str:
        """The value of an Authorization header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def find(settings: Settings, registry: str) -> Login | None:
    """Return how to sign in to a registry, the first that is found; a file that cannot be read says nothing."""
    names = HUB_NAMES if registry in HUB_NAMES else (registry, f"https://{registry}", f"https://{registry}/")
    for path in files(settings):
        known = _read(path)
        for name in names:
            login = _login(known.get(name))
            if login is not None:
                return login
    return None


def files(settings: Settings) -> Iterator[Path]:
    """Yield the files in the order in which podman looks at them."""
    if named := settings.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
        return
    home = paths.home(settings) or Path("/")
    if runtime := settings.get("XDG_RUNTIME_DIR"):
        yield Path(runtime, "containers", "auth.json")
    yield Path(settings.get("XDG_CONFIG_HOME") or home / ".config", "containers", "auth.json")
    yield Path(settings.get("DOCKER_CONFIG") or home / ".docker", "config.json")


def _read(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    logins = found.get("auths") if isinstance(found, dict) else None
    return logins if isinstance(logins, dict) else {}


def _login(entry: object) -> Login | None:
    if not isinstance(entry, dict):
        return None
    token = entry.get("identitytoken")
    try:
        user, _, password = base64.b64decode(str(entry.get("auth") or ""), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not user and not token:
        return None  # a helper program keeps it, and nobody else can ask that
    return Login(user, password.rstrip("\0"), token if isinstance(token, str) else None)
