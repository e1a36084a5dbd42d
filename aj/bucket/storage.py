"""What every kind of storage promises: one bucket with objects by name, each written whole or not at all."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Protocol

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


def objects(storage: Storage, prefix: str = "") -> Iterator[Stored]:
    """Yield all objects below a prefix, in the order of their names."""
    cursor: str | None = None
    while True:
        page = storage.page(prefix, cursor)
        yield from page.objects
        if page.cursor is None:
            return
        cursor = page.cursor


def check_name(name: str) -> str:
    """Return the name of an object. Raises UserError on one that some storage would take for another, or not at all."""
    parts = name.split("/")
    if not name or len(name) > LONGEST_NAME or any(part in ("", ".", "..") for part in parts):
        raise UserError(f"`{name[:80]}` cannot name an object", code="bad-name", hint="parts between `/`, none empty")
    if any(unicodedata.category(letter) in ("Cc", "Cs") or letter == "\\" for letter in name):
        raise UserError(f"{name[:80]!r} cannot name an object: a control character, or no UTF-8", code="bad-name")
    if any(part.endswith(".") for part in parts):
        raise UserError(f"`{name[:80]}` cannot name an object: a part ends with a dot", code="bad-name")
    return name
