"""The digest of code: SHA-256 of the tar of what was selected, equal on every machine for equal code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from aj.pack import cache, content, tar
from aj.pack.content import Changed, Ledger
from aj.pack.selection import Selection

BLOCK = 1 << 20
Result = TypeVar("Result")


def of(selection: Selection) -> str:
    """Return the digest in hex, without reading what is known from the last time.

    Raises UserError for a file that cannot be read or keeps changing.
    """
    return cache.recall(selection) or twice(selection, lambda: _read(selection))


def twice(selection: Selection, reading: Callable[[], Result]) -> Result:
    """Do a reading; if a large file changes meanwhile, once more. Raises UserError naming the file."""
    try:
        return reading()
    except Changed:
        pass  # it may be at rest now
    try:
        return reading()
    except Changed as error:
        raise content.trouble(selection, error.path, "changes while it is read") from error


def _read(selection: Selection) -> str:
    blocks = Blocks(lambda _: None)
    ledger = Ledger.of(selection)
    for _, pieces in content.members(selection, ledger):
        blocks.add(pieces)
    found = blocks.finish()
    cache.record(selection, ledger, found)
    return found


class Blocks:
    """Puts the pieces of a tar together to blocks of 1 MiB, passes them on, and sums those pieces that count."""

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self._sink = sink
        self._sum = hashlib.sha256()
        self._summed = 0
        self._passed = 0
        self._pieces: list[bytes] = []
        self._held = 0
        self._begun = 0  # how much of what is held was seen by the sum
        self._apart: list[tuple[int, int]] = []  # the parts of what is held that do not count

    def add(self, pieces: Iterable[bytes]) -> None:
        """Take pieces that count."""
        for piece in pieces:
            self._pieces.append(piece)
            self._held += len(piece)
            if self._held >= BLOCK:
                self._pass_on()

    def add_apart(self, piece: bytes) -> None:
        """Take a piece that does not count."""
        self._apart.append((self._held, self._held + len(piece)))
        self._pieces.append(piece)
        self._held += len(piece)

    def finish(self) -> str:
        """End the tar, pass on what is left, and return the sum, that of a tar of the counted pieces alone."""
        self._pass_on()
        self._sum.update(tar.ending(self._summed))
        self.add_apart(tar.ending(self._passed + self._held))
        self._pass_on()
        if self._held:
            self._sink(b"".join(self._pieces))
        return self._sum.hexdigest()

    def _pass_on(self) -> None:
        whole = b"".join(self._pieces)
        view = memoryview(whole)
        start = self._begun
        for end, after in (*self._apart, (len(whole), 0)):
            self._sum.update(view[start:end])
            self._summed += end - start
            start = after
        end = len(whole) - len(whole) % BLOCK
        for at in range(0, end, BLOCK):
            self._sink(whole[at : at + BLOCK])
        self._passed += end
        self._pieces, self._apart = [whole[end:]], []
        self._held = self._begun = len(whole) - end
