"""The tar format, as far as code needs it: the bytes depend on names, contents and the owner's execute bit alone.

PAX, with an extended header only for a value that does not fit. No owner, no time but one fixed moment; modes
are 0755, 0644 and 0777. The same tree gives the same bytes on every machine and Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

BLOCK = 512
RECORD = 10_240  # what tar programs write at once; the end is filled up to it
FILE, LINK, FOLDER, _EXTENDED = b"0", b"2", b"5", b"x"
MODES: Mapping[bytes, int] = {FILE: 0o644, LINK: 0o777, FOLDER: 0o755}
EXECUTABLE = 0o755
MOMENT = 946_684_800  # 2000-01-01T00:00:00Z: any fixed time after 1980, which zip tools need
_NAME, _PREFIX, _LINK_NAME = 100, 155, 100
_MAX_SIZE = 8**11 - 1
_OWNER = b"0000000\0" * 2
_TIME = b"%011o\0" % MOMENT
_MAGIC = b"ustar\x0000"
_AFTER_MAGIC = b"\0" * 64 + b"0000000\0" * 2
_FILL = b"\0" * BLOCK
_EXTENDED_NAME = b"././@PaxHeader"


def header(path: bytes, kind: bytes, *, size: int = 0, mode: int, target: bytes = b"") -> bytes:
    """Write the header of one member; a folder's path ends in a slash."""
    prefix, name = (b"", path) if len(path) <= _NAME else _split(path)
    records = b""
    if name is None:
        records += _record(b"path", path)
    if len(target) > _LINK_NAME:
        records += _record(b"linkpath", target)
    if size > _MAX_SIZE:
        records += _record(b"size", b"%d" % size)
    plain = _plain(prefix, path if name is None else name, kind, min(size, _MAX_SIZE), mode, target)
    return _extended(path + target, records) + plain if records else plain


def filling(size: int) -> bytes:
    """The zeros after a content, up to the next block."""
    return _FILL[: -size % BLOCK]


def ending(written: int) -> bytes:
    """The two empty blocks that end an archive, and the zeros up to the next record."""
    return b"\0" * (2 * BLOCK + -(written + 2 * BLOCK) % RECORD)


def _split(path: bytes) -> tuple[bytes, bytes | None]:
    """Part a long path at a slash between the two fields for it; None when it fits in no way."""
    at = path.find(b"/", max(0, len(path) - _NAME - 1), len(path) - 1)
    if at == -1 or at > _PREFIX or at == 0:
        return b"", None
    return path[:at], path[at + 1 :]


@cache
def _frame(kind: bytes, mode: int) -> tuple[bytes, bytes, int]:
    """The parts that all members of a kind share, and the sum of their bytes."""
    before = b"%07o\0" % mode + _OWNER
    after = _MAGIC + _AFTER_MAGIC
    return before, after, sum(before) + sum(after) + sum(_TIME) + sum(b" " * 8) + kind[0]


def _plain(prefix: bytes, name: bytes, kind: bytes, size: int, mode: int, target: bytes) -> bytes:
    before, after, total = _frame(kind, mode)
    name, target = name[:_NAME], target[:_LINK_NAME]
    digits = b"%011o\0" % size
    total += sum(name) + sum(target) + sum(prefix) + sum(digits)
    return b"".join(
        (
            name.ljust(_NAME, b"\0"),
            before,
            digits,
            _TIME,
            b"%06o\0 " % total,
            kind,
            target.ljust(_LINK_NAME, b"\0"),
            after,
            prefix.ljust(_PREFIX + 12, b"\0"),
        )
    )


def _record(key: bytes, value: bytes) -> bytes:
    """One `LENGTH key=value` line, its length counting itself."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %b=%b\n" % (length, key, value)


def _extended(names: bytes, records: bytes) -> bytes:
    """The member that carries values which do not fit; names that are not UTF-8 are declared as bytes."""
    try:
        names.decode()
    except UnicodeDecodeError:
        records = _record(b"hdrcharset", b"BINARY") + records
    head = _plain(b"", _EXTENDED_NAME, _EXTENDED, len(records), MODES[FILE], b"")
    return head + records + filling(len(records))
