"""What was learnt of a tree when it was last read, so that an unchanged tree need not be read again.

For each tree and rule set there is one file: a line with the digest and a fingerprint of all facts, then the
facts themselves and the SHA-256 of every file. When the fingerprint fits, no file is opened. When only times
changed, the files they belong to are read and compared. A file that was touched within two seconds of the
reading could change again without a trace, so it is read the next time. Whatever is odd about a cache file
means that there is none: it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterator
from pathlib import Path

from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.pack import content
from aj.pack.content import Changed, Ledger
from aj.pack.selection import KIND_SHIFT, WIDTH, Selection, column
from aj.store import atomic
from aj.version import VERSION

FORMAT = 1
RACY_NS = 2_000_000_000  # the coarsest clock of a file system in use (FAT)
KEEP = 64  # trees and rule sets; the oldest go
_EXECUTE = 0o100
_SUM = 32


@dataclass(frozen=True)
class _Known:
    digest: str
    fingerprint: str
    taken_at_ns: int
    is_racy: bool
    body_sha256: str


def recall(selection: Selection) -> str | None:
    """Return the digest of a selection that is known, or None. Reads only files that may have changed."""
    path = _path(selection)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            known = _head(file.readline())
            if known is None:
                return None
            if known.fingerprint == _fingerprint(selection) and not known.is_racy:
                return known.digest
            ledger = _compare(selection, known, file.read())
    except OSError:
        return None  # no cache file, or none that can be read
    if ledger is None:
        return None
    record(selection, ledger, known.digest)
    return known.digest


def record(selection: Selection, ledger: Ledger, digest: str) -> None:
    """Keep what a reading found. A cache that cannot be written is no error."""
    path = _path(selection)
    if path is None:
        return
    body = ledger.facts.tobytes() + bytes(ledger.sums) + _names(selection)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "root": selection.plan.root,
        "digest": digest,
        "fingerprint": _fingerprint(selection, ledger.facts),
        "taken_at_ns": selection.taken_at_ns,
        "is_racy": _is_racy(ledger.facts, selection.taken_at_ns),
        "body_sha256": hashlib.sha256(body).hexdigest(),
    }
    line = json.dumps(head, separators=(",", ":")).encode("ascii")
    try:
        atomic.make_folder(path.parent)
        _write(path, hashlib.sha256(line).hexdigest().encode() + b" " + line + b"\n" + body)
    except (AjError, OSError):
        return  # a read-only or full cache folder only costs time


def _write(path: Path, data: bytes) -> None:
    """Replace a cache file, without the wait for the disk: a torn one is recognized and thrown away."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(data)
        is_new = not path.exists()
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    if is_new:
        _prune(path.parent)


def _prune(folder: Path) -> None:
    files = sorted(folder.glob("*.tree"), key=lambda file: file.stat().st_mtime)
    for file in files[:-KEEP]:
        file.unlink(missing_ok=True)


def _path(selection: Selection) -> Path | None:
    """The cache file of this tree and rule set."""
    if selection.cache_dir is None:
        return None
    rules = [rule.text for rule in selection.rules.chosen]
    parts = [os.fsencode(selection.plan.root), os.fsencode(selection.plan.scripts or ""), *rules]
    name = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
    return selection.cache_dir / f"{name}.tree"


def _head(line: bytes) -> _Known | None:
    """Read the first line; None when it is damaged or of another release."""
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if hashlib.sha256(text).hexdigest().encode() != checksum:
        return None
    head = json.loads(text)
    if head["format"] != FORMAT or head["version"] != VERSION:
        return None
    return _Known(head["digest"], head["fingerprint"], head["taken_at_ns"], head["is_racy"], head["body_sha256"])


def _names(selection: Selection) -> bytes:
    """All names and link targets, in one row of bytes that tells one tree from another."""
    targets = (b"%b\0%b" % link for link in selection.targets.items())
    return b"\0".join((*selection.paths, b"", *targets))


def _fingerprint(selection: Selection, facts: array[int] | None = None) -> str:
    found = hashlib.sha256(selection.facts if facts is None else facts)
    found.update(_names(selection))
    return found.hexdigest()


def _is_racy(facts: array[int], taken_at_ns: int) -> bool:
    limit = taken_at_ns - RACY_NS
    return max(max(facts[2::WIDTH], default=0), max(facts[3::WIDTH], default=0)) >= limit


def _compare(selection: Selection, known: _Known, body: bytes) -> Ledger | None:
    """Read the files that may have changed; None at the first thing that differs."""
    count, files = len(selection.paths), selection.files
    names_at = count * WIDTH * 8 + files * _SUM
    if hashlib.sha256(body).hexdigest() != known.body_sha256 or body[names_at:] != _names(selection):
        return None
    before = array("q", body[: count * WIDTH * 8])
    sums = body[count * WIDTH * 8 : names_at]
    ledger = Ledger(selection.facts[:], bytearray(sums))
    for index, sum_, then in _suspects(selection, before, sums, known.taken_at_ns - RACY_NS):
        facts = _same(selection, index, sum_, then)
        if facts is None:
            return None
        ledger.facts[index * WIDTH : index * WIDTH + WIDTH] = facts
    return ledger


def _suspects(
    selection: Selection, before: array[int], sums: bytes, limit_ns: int
) -> Iterator[tuple[int, bytes, array[int]]]:
    """Give the files whose facts differ, or were too fresh when they were noted: index, sum and facts of then."""
    now = selection.facts
    for number, index in enumerate(selection.regular):
        then = before[index * WIDTH : index * WIDTH + WIDTH]
        if then != now[index * WIDTH : index * WIDTH + WIDTH] or then[2] >= limit_ns or then[3] >= limit_ns:
            yield index, sums[number * _SUM : number * _SUM + _SUM], then


def _same(selection: Selection, index: int, sum_: bytes, then: array[int]) -> array[int] | None:
    """Read one file; return its facts if it has the content of then and would be packed alike, else None."""
    mode, size = selection.facts[index * WIDTH : index * WIDTH + 2]
    if size != then[1] or mode >> KIND_SHIFT != then[0] >> KIND_SHIFT or mode & _EXECUTE != then[0] & _EXECUTE:
        return None
    try:
        facts, found = content.sum_of(selection, index)
    except (Changed, UserError):
        return None  # the full reading says what is wrong with it
    return column(facts) if found == sum_ and facts[0] & _EXECUTE == mode & _EXECUTE else None
