"""A watch: a job of which somebody wants to hear when it moves, and by which ways."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from urllib.parse import urlsplit

from aj.base.noun import dataclass

COMMAND, WEBHOOK, DESKTOP = "cmd", "webhook", "desktop"


@dataclass(frozen=True)
class Way:
    """How a notice reaches somebody: `cmd:LINE`, `webhook:URL` or `desktop`. Its value may hold a secret."""

    kind: str
    value: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Write it for eyes: of a command its first word, of an address its host."""
        if self.kind == COMMAND:
            return f"cmd:{self.value.split()[0]}"
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
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an address is due: webhook:https://HOST/PATH")
        return Way(WEBHOOK, value)
    raise ValueError("cmd:LINE, webhook:URL or desktop is due")


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
