"""What every kind of storage promises: one bucket with objects by name, each written whole or not at all."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator
from typing import Protocol

from aj.base import text
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model.bucket import Owner, Page, Stored

PAGE = 1000  # objects of one answer of a listing
LONGEST_NAME = 1024  # characters, by the services' own rule
OURS = ".aj/"  # names of ours in a bucket of a user: the logs of jobs

Moved = Callable[[int], None]  # bytes that went over, or, below zero, bytes that have to go again


class Source(Protocol):
    """Bytes to be put: their number, and any part of them."""

    @property
    def size(self) -> int:
        """How many there are."""

    def read(self, at: int, count: int) -> bytes:
        """Return a part; shorter only at the end."""


@dataclass(frozen=True)
class Bytes:
    """Bytes at hand as a source."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, at: int, count: int) -> bytes:
        """Return a part."""
        return self.data[at : at + count]


@dataclass(frozen=True)
class Seen:
    """A bucket that is there, and the mark it bears."""

    owner: Owner | None = None


class Storage(Protocol):
    """One bucket. Safe between threads.

    Every call raises NotFound without the bucket or the object, Refused and AuthError without the right to it,
    Unavailable when another try may help, and AjError when a disk refuses.
    """

    @property
    def label(self) -> str:
        """How a person knows it."""

    def look(self) -> Seen | None:
        """Return what is there; None when there is no such bucket."""

    def create(self, owner: Owner | None = None) -> bool:
        """Make the bucket with a mark; False when there is one already, which stays as it is."""

    def delete(self) -> None:
        """Remove the bucket with all objects. One that is gone already is fine."""

    def page(self, prefix: str, cursor: str | None, limit: int = PAGE) -> Page:
        """Return the objects below a prefix, in the order of their names, from a cursor on."""

    def head(self, name: str) -> Stored:
        """Return one object."""

    def read(self, name: str, at: int, count: int, etag: str | None = None) -> bytes:
        """Return a part of an object. Raises Refused with code `conflict` when it is another than `etag` names."""

    def put(self, name: str, source: Source, moved: Moved | None = None, stamp: int | None = None) -> Stored:
        """Write an object whole, in the place of what was there. Raises what `source` raises."""

    def swap(self, name: str, data: bytes, etag: str | None) -> Stored:
        """Write a small object where `etag` stands, or, by None, where nothing does.

        Raises Refused with code `conflict` when something else stands there.
        """

    def remove(self, name: str) -> None:
        """Remove an object. One that is gone already is fine."""


def objects(storage: Storage, prefix: str = "", told: Callable[[str], None] = lambda _: None) -> Iterator[Stored]:
    """Yield all objects below a prefix, in the order of their names. `told` hears what is passed over."""
    cursor: str | None = None
    while True:
        page = storage.page(prefix, cursor)
        for words in page.told:
            told(words)
        yield from page.objects
        if page.cursor is None:
            return
        cursor = page.cursor


def check_name(name: str) -> str:
    """Return the name of an object. Raises UserError on one that some storage would take for another, or not at all."""
    why = unfit(name)
    if why is not None:
        words = f"`{legible(name[:80])}` cannot name an object: {why}"
        raise UserError(words, code="bad-name", hint="parts between `/`, none empty")
    return name


def unfit(name: str) -> str | None:
    """Say why a name cannot be that of an object; None when it can."""
    parts = name.split("/")
    if len(name) > LONGEST_NAME:
        return f"it has more than {LONGEST_NAME} characters"
    if any(unicodedata.category(letter) in ("Cc", "Cs") or letter == "\\" for letter in name):
        return "a control character, a backslash, or no UTF-8"
    if any(part in ("", ".", "..") for part in parts):
        return "a part is empty, `.` or `..`"
    if any(part.endswith(".") for part in parts):
        return "a part ends with a dot"
    return None


def legible(name: str) -> str:
    """Write any name so that it can be shown and sent: what is no letter as an escape."""
    return text.cell(text.decoded(os.fsencode(name)))


def passed_over(label: str, name: str, why: str) -> str:
    """Say what of a bucket is passed over: where it is, and why."""
    return f"{label}/{legible(name)} is passed over: {why}"
