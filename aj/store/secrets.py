"""Secrets on disk: values that jobs are given by name. One private file each; the value is never told to anyone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from aj.base import redact
from aj.base.clock import rfc3339
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.store import atomic
from aj.store.layout import Layout

LARGEST = 64 << 10  # bytes of one value: a variable of the environment holds no more than twice of it
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z", re.ASCII)


@dataclass(frozen=True)
class SecretFacts:
    """What may be told of a secret."""

    name: str
    created_at: str


def check_name(name: str) -> str:
    """Return the name. Raises UserError when it cannot name a variable of a job."""
    if not _NAME.match(name):
        raise UserError(
            f"`{name}` cannot name a secret", hint="letters, digits and `_`, the first no digit, at most 63"
        )
    return name


def save(layout: Layout, name: str, value: str) -> None:
    """Keep a new one. Raises Refused when the name is taken, UserError, AjError when the disk refuses."""
    path = _path(layout, name)
    if path.exists():
        raise Refused(
            f"there is a secret `{name}` already", code="secret-exists", hint=f"`aj secrets delete {name}` first"
        )
    raw = value.encode()
    if not raw or len(raw) > LARGEST or b"\0" in raw:
        raise UserError(
            f"the value of secret `{name}` cannot be a variable", hint="1 to 65536 bytes of text, no NUL among them"
        )
    redact.hide(value)
    atomic.make_folder(layout.secrets)
    atomic.write_bytes(path, raw)


def listing(layout: Layout) -> list[SecretFacts]:
    """Return what may be told of all, by name."""
    found = []
    for name in names(layout):
        try:
            found.append(SecretFacts(name, rfc3339(_path(layout, name).stat().st_mtime)))
        except FileNotFoundError:
            continue  # deleted meanwhile
    return found


def names(layout: Layout) -> list[str]:
    """Return the names of all."""
    try:
        return sorted(name for name in os.listdir(layout.secrets) if _NAME.match(name))
    except FileNotFoundError:
        return []


def values(layout: Layout, wanted: Iterable[str]) -> dict[str, str]:
    """Return the values of some, for the environment of a job. Raises NotFound naming one, AjError."""
    found = {}
    for name in wanted:
        try:
            found[name] = _path(layout, name).read_bytes().decode()
        except FileNotFoundError:
            raise NotFound(
                f"no secret `{name}`", code="no-such-secret", hint=f"`aj secrets create {name}` reads its value"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise AjError(f"secret `{name}` cannot be read", code="unreadable-secret") from error
        redact.hide(found[name])
    return found


def delete(layout: Layout, name: str) -> None:
    """Remove one. Raises NotFound, AjError when the disk refuses."""
    path = _path(layout, name)
    if not path.exists():
        raise NotFound(f"no secret `{name}`", code="no-such-secret", hint="`aj secrets list`")
    atomic.remove(path)


def _path(layout: Layout, name: str) -> Path:
    return layout.secrets / check_name(name)
