"""The hash of a file by which its bytes are stored: checked piece by piece while they leave, so that what is stored
under a hash has that hash even when the file was written to meanwhile.

A file of one piece has its SHA-256, a longer one the SHA-256 of the hashes of its pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from aj.base.errors import AjError
from aj.base.noun import dataclass
from aj.bucket.storage import Source

PIECE = 4 << 20  # bytes; every storage reads in multiples of it


class Moving(AjError):
    """A file was written to while it was read."""

    default_code = "moving"


@dataclass(frozen=True)
class Digest:
    """The hash of some bytes, with those of their pieces."""

    sha256: str
    size: int
    pieces: tuple[bytes, ...]


def of(source: Source) -> Digest:
    """Hash a source. Raises Moving when it became shorter meanwhile."""
    pieces: list[bytes] = []
    for piece in _pieces(source, 0, source.size):
        pieces.append(hashlib.sha256(piece).digest())
    pieces = pieces or [hashlib.sha256().digest()]
    whole = pieces[0] if len(pieces) == 1 else hashlib.sha256(b"".join(pieces)).digest()
    return Digest(whole.hex(), source.size, tuple(pieces))


def _pieces(source: Source, at: int, end: int) -> Iterator[bytes]:
    for start in range(at, end, PIECE):
        due = min(PIECE, end - start)
        piece = source.read(start, due)
        if len(piece) != due:
            raise Moving("a file became shorter while it was read")
        yield piece


@dataclass(frozen=True)
class Checked:
    """A source whose bytes must be those that were hashed."""

    inner: Source
    digest: Digest

    @property
    def size(self) -> int:
        return self.digest.size

    def read(self, at: int, count: int) -> bytes:
        """Return a part that begins with a piece. Raises Moving when it is not what was hashed."""
        end = min(self.size, at + count)
        found = bytearray()
        for number, piece in enumerate(_pieces(self.inner, at, end), start=at // PIECE):
            if hashlib.sha256(piece).digest() != self.digest.pieces[number]:
                raise Moving("a file was written to while it was read")
            found += piece
        return bytes(found)
