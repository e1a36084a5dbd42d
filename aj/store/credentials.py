"""Credentials on disk: what opens storage elsewhere. One private file each; the value is never told to anyone.

The daemon reads them when it opens a bucket. What commands and answers hold is `CredentialFacts`, which has no value.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from dataclasses import field
from pathlib import Path

from aj.base import redact
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.model.bucket import HERE, CredentialFacts, Kind
from aj.store import atomic
from aj.store.layout import Layout

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z", re.ASCII)
ACCOUNT_KEY, SIGNATURE, SIGN_IN, FOLDER = "account key", "signature", "sign-in", "folder"


@dataclass(frozen=True)
class Credential:
    """One credential, whole. `value` opens the account; None means the user's own sign-in, or a folder."""

    name: str
    kind: Kind
    opens: str
    account: str | None = None
    endpoint: str | None = None
    root: str | None = None
    tenant: str | None = None
    created_at: str | None = None
    value: str | None = field(default=None, repr=False)

    @property
    def facts(self) -> CredentialFacts:
        """What may be told of it."""
        return CredentialFacts(
            self.name, self.kind, self.opens, self.account, self.endpoint, self.root, self.tenant, self.created_at
        )


def check_name(name: str) -> str:
    """Return the name. Raises UserError when it cannot name a credential (it also names a file)."""
    if not _NAME.match(name):
        raise UserError(
            f"`{name}` cannot name a credential",
            hint="letters, digits, `.`, `_` and `-`, at most 63, the first a letter or digit",
        )
    return name


def here(layout: Layout) -> Credential:
    """Return the one that everybody has: folders of this machine, in the state directory."""
    return Credential(HERE, Kind.DIR, FOLDER, root=str(layout.buckets))


def save(layout: Layout, credential: Credential) -> None:
    """Keep a new one. Raises Refused when the name is taken, UserError, AjError when the disk refuses."""
    path = _path(layout, credential.name)
    if credential.name == HERE or path.exists():
        raise Refused(
            f"there is a credential `{credential.name}` already",
            code="credential-exists",
            hint=f"`aj credentials delete {credential.name}`, or another name",
        )
    if credential.value is not None:
        redact.hide(credential.value)
    atomic.make_folder(layout.credentials)
    words = {
        "kind": credential.kind.value,
        "opens": credential.opens,
        "account": credential.account,
        "endpoint": credential.endpoint,
        "root": credential.root,
        "tenant": credential.tenant,
        "created_at": credential.created_at,
        "value": credential.value,
    }
    atomic.write_json(path, words)


def read(layout: Layout, name: str) -> Credential:
    """Read one whole. Raises NotFound, AjError when its file cannot be read."""
    if name == HERE:
        return here(layout)
    path = _path(layout, name)
    try:
        value = json.loads(path.read_bytes())
        found = Credential(
            name,
            Kind(value["kind"]),
            str(value["opens"]),
            *(_text(value, key) for key in ("account", "endpoint", "root", "tenant", "created_at", "value")),
        )
    except FileNotFoundError:
        raise NotFound(
            f"no credential `{name}`", code="no-such-credential", hint="`aj credentials list` shows those there are"
        ) from None
    except OSError as error:
        raise AjError(f"{path}: {error.strerror}", code="unreadable-credential") from error
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise AjError(
            f"{path} is damaged", code="damaged-credential", hint=f"`aj credentials delete {name}`"
        ) from error
    if found.value is not None:
        redact.hide(found.value)
    return found


def _text(value: dict[str, object], key: str) -> str | None:
    found = value.get(key)
    return None if found is None else str(found)


def listing(layout: Layout) -> tuple[list[CredentialFacts], list[str]]:
    """Return what may be told of all, by name, and which files could not be read."""
    found, told = [here(layout).facts], []
    for name in names(layout):
        try:
            found.append(read(layout, name).facts)
        except AjError as error:
            told.append(error.message)
    return found, told


def names(layout: Layout) -> list[str]:
    """Return the names of all that are saved."""
    try:
        found = sorted(os.listdir(layout.credentials))
    except FileNotFoundError:
        return []
    return [name.removesuffix(".json") for name in found if name.endswith(".json") and not name.startswith(".")]


def delete(layout: Layout, name: str) -> None:
    """Remove one. Raises NotFound, AjError when the disk refuses."""
    path = _path(layout, name)
    if not path.exists():
        raise NotFound(f"no credential `{name}`", code="no-such-credential", hint="`aj credentials list`")
    atomic.remove(path)


def _path(layout: Layout, name: str) -> Path:
    return layout.credentials / f"{check_name(name)}.json"


def nonce(layout: Layout, about: str) -> str:
    """Return a word about something that only this state directory can say, and always says the same.

    Raises AjError when the disk refuses.
    """
    path = layout.credentials / ".key"
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        atomic.make_folder(layout.credentials)
        key = os.urandom(32)
        atomic.write_bytes(path, key)
    except OSError as error:
        raise AjError(f"{path}: {error.strerror}", code="unreadable-credential") from error
    return hmac.new(key, about.encode(), hashlib.sha256).hexdigest()[:32]
