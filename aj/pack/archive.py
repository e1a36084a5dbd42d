"""A code tree to an archive that is named by what is in it, and kept, so that the same code is packed once.

`<digest>.tar.gz` is the tree alone; with generated files beside it, the name carries a mark of these as well,
because the digest counts the selected files only. Beside each archive stands a small file with its SHA-256.
Both sums are computed while the archive is written; it appears under its name whole, or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from aj.base import units
from aj.base.clock import SYSTEM
from aj.base.errors import Refused, UserError
from aj.base.noun import dataclass
from aj.model.code import CodeRef
from aj.pack import cache, content, deflate, digest, ignore, tar
from aj.pack.content import Ledger
from aj.pack.selection import WIDTH, Selection, need_files, shown
from aj.store import atomic

Generated = Mapping[bytes, tuple[bytes, int]]  # path -> content, mode
NOTHING: Generated = MappingProxyType({})
ABANDONED_S = 24 * 3600.0  # no packing takes that long: what is older was left by a crash
_ENDING = ".tar.gz"


def pack(selection: Selection, *, folder: Path, generated: Generated = NOTHING, threads: int | None = None) -> CodeRef:
    """Pack a selection into `folder`, or find the archive that is there already.

    `generated` files are in the archive but not in the digest. The bytes do not depend on `threads`.
    Raises UserError when nothing is selected, a file cannot be read or keeps changing, or the archive is above
    the limit of the plan; Refused when the disk may be too small; AjError when the folder cannot be written.
    """
    need_files(selection)
    _refuse_doubles(selection, generated)
    known = cache.recall(selection)
    kept = _kept(folder, known, generated) if known else None
    if kept is None:
        atomic.make_folder(folder)
        _sweep(folder)
        _need_space(selection, folder)
        kept = digest.twice(selection, lambda: _make(selection, folder, generated, threads or deflate.processors()))
    _check_size(selection, kept.archive_bytes)
    return kept


def weigh(selection: Selection, *, folder: Path, generated: Generated = NOTHING, threads: int | None = None) -> CodeRef:
    """Return what packing would give, and keep nothing. An archive of `folder` is not made again. Raises as `pack`."""
    need_files(selection)
    _refuse_doubles(selection, generated)
    known = cache.recall(selection)
    kept = _kept(folder, known, generated) if known else None
    if kept is not None:
        return kept
    return digest.twice(selection, lambda: _weighed(selection, generated, threads or deflate.processors()))


def _weighed(selection: Selection, generated: Generated, threads: int) -> CodeRef:
    ledger = Ledger.of(selection)
    with open(os.devnull, "wb") as file:  # noqa: PTH123  written for its sums alone
        output = _Output(file, selection)
        digest_ = _write(selection, generated, ledger, output, threads)
    cache.record(selection, ledger, digest_)
    size: int = sum(ledger.facts[1::WIDTH])
    return CodeRef(digest_, output.total.hexdigest(), selection.files, size, output.size)


def find(folder: Path, ref: CodeRef) -> Path | None:
    """Return the archive of packed code, or None when it is gone."""
    for note in folder.glob(f"{ref.digest}*.json"):
        path = note.with_name(note.name.removesuffix(".json") + _ENDING)
        if _noted(note, path) == ref:
            return path
    return None


def _place(folder: Path, digest_: str, generated: Generated) -> Path:
    return folder / f"{digest_}{_mark(generated)}{_ENDING}"


def _mark(generated: Generated) -> str:
    """Tell one set of generated files from another; empty for none."""
    if not generated:
        return ""
    total = hashlib.sha256()
    for path, (data, mode) in sorted(generated.items()):
        total.update(b"%d %d %o " % (len(path), len(data), mode) + path + data)
    return f".{total.hexdigest()[:16]}"


def _note(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(_ENDING) + ".json")


def _kept(folder: Path, digest_: str, generated: Generated) -> CodeRef | None:
    path = _place(folder, digest_, generated)
    found = _noted(_note(path), path)
    return found if found and found.digest == digest_ else None


def _noted(note: Path, path: Path) -> CodeRef | None:
    """Read the note of an archive; None unless it fits a whole archive."""
    try:
        value = json.loads(note.read_bytes())
        found = CodeRef(
            value["digest"], value["archive_sha256"], value["files"], value["bytes"], value["archive_bytes"]
        )
        return found if path.stat().st_size == found.archive_bytes else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing or damaged: it is made again


def _refuse_doubles(selection: Selection, generated: Generated) -> None:
    for path in generated:
        if selection.has(path):
            raise UserError(
                f"`{shown(path)}` is in the code, and a file of that name is added to the archive",
                hint=f"rename it, or add `{shown(ignore.line_for(path))}` to {selection.ignore_file or '.codeignore'}",
            )


def _sweep(folder: Path) -> None:
    """Remove what a crash left half written."""
    limit = SYSTEM.now() - ABANDONED_S
    for path in folder.glob(".*.part"):
        with contextlib.suppress(OSError):  # another one swept it
            if path.stat().st_mtime < limit:
                path.unlink()


@dataclass
class _Output:
    """The archive as it is written: counted, summed, and stopped at the limit."""

    file: BinaryIO
    selection: Selection
    size: int = 0
    total: hashlib._Hash = field(default_factory=hashlib.sha256)

    def write(self, data: bytes) -> None:
        self.size += len(data)
        _check_size(self.selection, self.size)
        self.total.update(data)
        self.file.write(data)


def _check_size(selection: Selection, size: int) -> None:
    limit = selection.plan.max_bytes
    if limit is None or size <= limit:
        return
    largest = selection.largest(1)
    line = shown(ignore.line_for(largest[0].path)) if largest else "/data/"
    raise UserError(
        f"the code archive is above the limit of {units.size(limit)} (`code.max_bytes`): "
        f"{selection.files} files, {units.size(selection.bytes)} unpacked; the largest: {selection.in_words()}",
        code="code-too-large",
        hint=f"add `{line}` to {selection.ignore_file or '.codeignore'}",
        details={"limit": limit, "bytes": selection.bytes, "files": selection.files},
    )


def _need_space(selection: Selection, folder: Path) -> None:
    """Refuse code that may not fit: what does not shrink takes as much space packed as it takes in the tree."""
    try:
        there = os.statvfs(folder)
    except OSError:
        return  # a file system that does not tell
    free = there.f_bavail * there.f_frsize
    due = min(selection.bytes, selection.plan.max_bytes or selection.bytes)
    if there.f_blocks and free < due:
        raise Refused(
            f"the code of {units.size(selection.bytes)} may not fit into {folder}: {units.size(free)} are free",
            code="no-space",
            hint="`aj code prune --keep 1d` frees some; AJ_STATE_DIR names another place",
            details={"free": free, "bytes": selection.bytes},
        )


def _make(selection: Selection, folder: Path, generated: Generated, threads: int) -> CodeRef:
    beside = folder / f".pack.{os.getpid()}.{os.urandom(4).hex()}.part"
    ledger = Ledger.of(selection)
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            output = _Output(file, selection)
            digest_ = _write(selection, generated, ledger, output, threads)
            file.flush()
            os.fsync(file.fileno())
        size: int = sum(ledger.facts[1::WIDTH])
        ref = CodeRef(digest_, output.total.hexdigest(), selection.files, size, output.size)
        kept = _kept(folder, digest_, generated) or _put(beside, ref, _place(folder, digest_, generated))
    except OSError as error:
        raise atomic.cannot_write(folder, error) from error
    finally:
        beside.unlink(missing_ok=True)
    cache.record(selection, ledger, digest_)
    return kept


def _put(beside: Path, ref: CodeRef, path: Path) -> CodeRef:
    """Give a written archive its name, then its note, each durable before the next."""
    os.replace(beside, path)
    atomic.sync_folder(path.parent)
    atomic.write_json(
        _note(path),
        {
            "schema_version": 1,
            "digest": ref.digest,
            "archive_sha256": ref.archive_sha256,
            "files": ref.files,
            "bytes": ref.bytes,
            "archive_bytes": ref.archive_bytes,
        },
    )
    return ref


def _write(selection: Selection, generated: Generated, ledger: Ledger, output: _Output, threads: int) -> str:
    """Write the archive and return the digest of what was selected."""
    added = deque(_added(selection, generated))
    with deflate.Gzip(output.write, threads=threads) as gzip:
        blocks = digest.Blocks(gzip.write)
        for path, pieces in content.members(selection, ledger):
            while added and added[0][0] < path:
                blocks.add_apart(added.popleft()[1])
            blocks.add(pieces)
        for _, piece in added:
            blocks.add_apart(piece)
        found = blocks.finish()
        gzip.finish()
    return found


def _added(selection: Selection, generated: Generated) -> list[tuple[bytes, bytes]]:
    """Give the generated members in byte order, with the folders that the selection does not bring."""
    wanted: dict[bytes, bytes] = {}
    for path, (data, mode) in generated.items():
        parts = path.split(b"/")
        if not all(parts) or b"." in parts or b".." in parts:
            raise UserError(f"`{shown(path)}` is no name for a file of the archive")
        for depth in range(1, len(parts)):
            above = b"/".join(parts[:depth]) + b"/"
            if above not in selection.names:
                wanted[above] = tar.header(above, tar.FOLDER, mode=tar.MODES[tar.FOLDER])
        wanted[path] = tar.header(path, tar.FILE, size=len(data), mode=mode) + data + tar.filling(len(data))
    return sorted(wanted.items())
