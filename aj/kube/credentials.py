"""Who we are to a cluster: a token, a certificate, a password, or what a program of the kubeconfig gives.

Such a program has a minute, no terminal, and is asked again only when what it gave runs out or is
refused. What it prints is never shown as it is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from aj.base import proc, redact, text
from aj.base.clock import Clock, from_rfc3339
from aj.base.errors import AuthError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.kube.config import Pem, Plugin, User
from aj.model.json import Json

LIMIT_S = 60.0  # a sign-in over a slow network takes seconds; a program that waits for a person takes for ever
EARLY_S = 60.0  # a token is not used in its last minute: a request must end before
SHOWN = 300  # characters of what a program said when it failed


@dataclass(frozen=True)
class Credential:
    """What goes along with a request. `expires_at` is in seconds since the epoch, None for never."""

    token: str | None = field(default=None, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)
    certificate: Pem | None = None
    key: Pem | None = None
    expires_at: float | None = None


class Credentials:
    """The credentials of one user of a kubeconfig. Safe between threads."""

    def __init__(self, user: User, settings: Settings, clock: Clock) -> None:
        self._user = user
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._known: Credential | None = None

    def get(self) -> Credential:
        """Return what is good now. Raises AuthError."""
        user = self._user
        if user.token_file is not None:  # renewed in place by whoever wrote it
            return Credential(_told(_read(user.token_file)), None, user.certificate, user.key)
        if user.token or user.plugin is None:
            basic = (user.username, user.password or "") if user.username else None
            return Credential(_told(user.token), basic, user.certificate, user.key)
        with self._lock:
            if self._known is None or self._is_over(self._known):
                self._known = self._run(user.plugin)
            return self._known

    def drop(self) -> bool:
        """Forget what a program gave, since it was refused; False when there is nothing that could be renewed."""
        with self._lock:
            had, self._known = self._known, None
        return had is not None

    def _is_over(self, known: Credential) -> bool:
        return known.expires_at is not None and known.expires_at - EARLY_S <= self._clock.now()

    def _run(self, plugin: Plugin) -> Credential:
        who = f"`{plugin.argv[0]}`, by which the user {self._user.name} signs in,"
        if plugin.needs_terminal:
            raise AuthError(f"{who} wants a terminal, and the daemon has none", hint="set its `interactiveMode: Never`")
        try:
            done = proc.run(_argv(plugin), env=_env(plugin, self._settings), timeout_s=LIMIT_S)
        except TimeoutError:
            hint = f"run `{' '.join(plugin.argv)}` to see what it waits for"
            raise AuthError(f"{who} did not end within {LIMIT_S:g} s", hint=hint) from None
        except OSError as error:
            advice = text.visible(plugin.hint)[:SHOWN] if plugin.hint else None
            raise AuthError(f"{who} cannot be started: {error.strerror}", hint=advice) from error
        if done.code != 0:
            said = " ".join(redact.text(text.visible(text.decoded(done.err))).split())[-SHOWN:]
            raise AuthError(f"{who} ended with {done.code}: {said or 'it said nothing'}")
        try:
            return _credential(plugin, json.loads(done.out))
        except (ValueError, RecursionError):
            raise AuthError(f"{who} printed no credential of {plugin.api_version}") from None


def _argv(plugin: Plugin) -> list[str]:
    command, *arguments = plugin.argv
    is_path = "/" in command and not Path(command).is_absolute()
    return [str(plugin.folder / command) if is_path else command, *arguments]


def _env(plugin: Plugin, settings: Settings) -> dict[str, str]:
    spec: dict[str, Json] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = _cluster(plugin.cluster)
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return {**settings.env, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _cluster(cluster: Mapping[str, Json]) -> dict[str, Json]:
    """Return a cluster as such a program wants to read it; its own settings stand among the extensions."""
    known = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    found = {key: cluster[key] for key in known if key in cluster}
    extensions = cluster.get("extensions")
    for item in extensions if isinstance(extensions, list) else []:
        if isinstance(item, Mapping) and item.get("name") == "client.authentication.k8s.io/exec":
            found["config"] = item.get("extension")
    return found


def _credential(plugin: Plugin, answer: object) -> Credential:
    """Read the answer of a program. Raises ValueError."""
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or not isinstance(status, dict) or answer.get("apiVersion") != plugin.api_version:
        raise ValueError("no credential")
    token, certificate, key = (status.get(name) for name in ("token", "clientCertificateData", "clientKeyData"))
    if not isinstance(token, str | None) or not (token or certificate):
        raise ValueError("no credential")
    expires = status.get("expirationTimestamp")
    return Credential(
        token=_told(token),
        certificate=Pem(content=str(certificate).encode()) if certificate else None,
        key=Pem(content=str(key).encode()) if key else None,
        expires_at=from_rfc3339(expires) if isinstance(expires, str) else None,
    )


def _told(token: str | None) -> str | None:
    """Return a token that no text of ours will ever show."""
    if token:
        redact.hide(token)
    return token


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AuthError(f"the token in {file} cannot be read: {error}") from error
