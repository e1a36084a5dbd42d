"""The address of a repository: as git gets it, as people see it, and the credentials that stand in neither."""

from __future__ import annotations

import os
import re
from dataclasses import field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from aj.base.errors import OptionError
from aj.base.noun import dataclass

_GITHUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}\Z")
_SCP = re.compile(r"(?:[^/@:\s]+@)?[^/@:\s]+:(?!//)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
SCHEMES = ("https", "http", "ssh", "git", "file")  # programs behind other words are never started


@dataclass(frozen=True)
class Address:
    """Where a repository is. `url` holds no credentials; `user` and `password` are those of this one call."""

    url: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


def read(word: str, start: Path) -> Address:
    """Read what a person wrote: `owner/name` of GitHub, an address, or a path (relative to `start`).

    Raises OptionError.
    """
    if not word or word.startswith("-") or _CONTROL.search(word):
        raise OptionError(f"`{word}` is no repository", hint="owner/name, an address or a path", code="bad-repository")
    if _GITHUB.match(word) and ".." not in word:
        return Address(f"git@github.com:{word.removesuffix('.git')}.git")
    if "://" in word:
        return _of_url(word)
    if "::" in word:
        raise _unknown_scheme(word.partition("::")[0])
    if _SCP.match(word):
        return Address(word)
    return Address(os.path.abspath(start / word))


def without_credentials(word: str) -> str:
    """Return what a person wrote as it may be kept and shown. Raises OptionError."""
    return _of_url(word).url if "://" in word else word


def _of_url(word: str) -> Address:
    try:
        parts = urlsplit(word)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        raise OptionError("the repository's address cannot be read", code="bad-repository") from None
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise _unknown_scheme(parts.scheme)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    keeps_user = scheme == "ssh" and user is not None  # there it is no credential: it names the account
    place = f"{parts.username}@{host}{port}" if keeps_user else f"{host}{port}"
    return Address(urlunsplit((scheme, place, parts.path, "", "")), None if keeps_user else user, password)


def _unknown_scheme(scheme: str) -> OptionError:
    return OptionError(
        f"a repository cannot be reached by `{scheme}`", hint=f"one of {', '.join(SCHEMES)}", code="bad-repository"
    )
