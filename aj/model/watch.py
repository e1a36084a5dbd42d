"""A watch: a job of which somebody wants to hear when it moves, and by which ways."""

from __future__ import annotations

import re
import shlex
from dataclasses import field
from enum import StrEnum
from pathlib import PurePath
from urllib.parse import urlsplit

from aj.base.noun import dataclass

COMMAND, WEBHOOK, DESKTOP = "cmd", "webhook", "desktop"
PORTS = range(1, 65536)
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=.*", re.ASCII | re.DOTALL)
_PROGRAM = re.compile(r"[A-Za-z0-9_.+/-]+", re.ASCII)
_NAME = r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"({_NAME}(\.{_NAME})*|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?", re.ASCII)


@dataclass(frozen=True)
class Way:
    """How a notice reaches somebody: `cmd:LINE`, `webhook:URL` or `desktop`. Its value may hold a secret."""

    kind: str
    value: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Write it for eyes: of a command its program's name, of an address its host."""
        if self.kind == COMMAND:
            return f"cmd:{_program(self.value)}"
        if self.kind == WEBHOOK:
            return f"webhook:{urlsplit(self.value).hostname}"
        return self.kind


def way(word: str) -> Way:
    """Read a way. Raises ValueError saying what is due."""
    kind, _, value = word.partition(":")
    if word == DESKTOP:
        return Way(DESKTOP)
    if kind == COMMAND and value.strip():
        return Way(COMMAND, value.strip())
    if kind == WEBHOOK:
        _refuse_bad_address(value)
        return Way(WEBHOOK, value)
    raise ValueError("cmd:LINE, webhook:URL or desktop is due")


def _program(line: str) -> str:
    """Return the name of the program that a command line runs, or `…` where it is not plain to see.

    What is assigned to variables before it may be a secret, and so may anything that only looks like a program.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        first = next((word for word in words if word.strip("();<>|&") and not _ASSIGNED.fullmatch(word)), "")
    except ValueError:  # a quote that never ends
        return "…"
    return PurePath(first).name if _PROGRAM.fullmatch(first) else "…"


def _refuse_bad_address(value: str) -> None:
    """Raise ValueError, which shows nothing of it, when no request could ever go to an address."""
    scheme, between, rest = value.partition("://")
    place = re.split(r"[/?]", rest, maxsplit=1)[0]
    if re.search(r"[^\x21-\x7e]", value):
        raise ValueError("the address holds a space, a line break or a letter outside ASCII: write it as %XX")
    if "@" in place:
        raise ValueError("the address holds a user or a password: a web hook gets none, leave it out")
    if not between or scheme.lower() not in ("http", "https") or not place:
        raise ValueError("an address is due: webhook:https://HOST/PATH")
    if not _HOST.fullmatch(place) or not _is_ipv6(place):
        raise ValueError("the address names no host: webhook:https://HOST/PATH or webhook:https://[IPV6]/PATH")
    port = re.search(r":([0-9]+)\Z", place)
    if port and (len(port[1]) > 5 or int(port[1]) not in PORTS):
        raise ValueError("the address has a port that is none: 1 to 65535 is due")


def _is_ipv6(place: str) -> bool:
    """Tell whether what stands in brackets is an address; without brackets there is nothing to tell."""
    import ipaddress  # few hooks name one

    if not place.startswith("["):
        return True
    try:
        ipaddress.IPv6Address(place[1:].partition("]")[0])
    except ValueError:
        return False
    return True


class Delivery(StrEnum):
    """What became of the last notice."""

    SENT = "sent"
    FAILED = "failed"
    UNSURE = "unsure"  # the daemon died while it was on its way; it is not sent twice


@dataclass(frozen=True)
class Sighting:
    """Where a job stands: a word for its state, whether that is its end, and why; `handle` when it is elsewhere."""

    state: str
    is_final: bool = False
    message: str | None = None
    handle: str | None = None


@dataclass(frozen=True)
class Watch:
    """One watched job. `id` is its AJ ID, or for a job that is not ours its name; `handle` names it at its place.
    `project` is a key, and `folder` that project's directory, where commands run in its root.

    `state` is the last one that was told; None until the job was seen. `leaving` is set while the notice of that
    state is on its way. `problem` is why the job cannot be looked at just now, `refusal` why the last notice did not
    arrive. With `ahead` the watch is older than its job. Times are RFC 3339 UTC.
    """

    id: str
    project: str
    name: str
    added_at: str
    handle: str | None = None
    folder: str | None = None
    ways: tuple[Way, ...] = field(default=(), repr=False)
    state: str | None = None
    message: str | None = None
    changed_at: str | None = None
    is_over: bool = False
    leaving: bool = False
    delivery: Delivery | None = None
    problem: str | None = None
    refusal: str | None = None
    ahead: bool = False
    schema_version: int = 1
