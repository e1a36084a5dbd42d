"""The manifest of a checkpoint: which files belong together, and where their bytes are.

    blobs/<sha256>          the bytes of a file, by their hash; never changed
    manifests/<number>-<word>.json   one complete checkpoint
    head.json               the manifests that count, the newest first; changed only on a condition

Bytes are written first, then the manifest, then the head, so whoever reads the head finds all that it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.bucket.storage import check_name
from aj.model.json import Json
from aj.wire import codec

HEAD = "head.json"
SCHEMA = 1
_SHA = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True)
class Entry:
    """One file of a checkpoint."""

    name: str
    size: int
    sha256: str
    mtime_ns: int
    mode: int = 0o644


@dataclass(frozen=True)
class Manifest:
    """One complete checkpoint. `at` is seconds since the epoch, `attempt` the start of the job that wrote it."""

    number: int
    at: float
    attempt: int
    files: tuple[Entry, ...]
    folders: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    schema_version: int = SCHEMA

    @property
    def size_bytes(self) -> int:
        return sum(entry.size for entry in self.files)


@dataclass(frozen=True)
class Head:
    """The complete checkpoints that are kept, by the names of their manifests, the newest first."""

    manifests: tuple[str, ...]
    schema_version: int = SCHEMA


LOADED = TypeVar("LOADED", Head, Manifest)


def blob(sha256: str) -> str:
    """Return the name of the object with such bytes."""
    return f"blobs/{sha256}"


def dump(value: Manifest | Head) -> bytes:
    """Write a manifest or a head."""
    return json.dumps(codec.dump(value), separators=(",", ":"), allow_nan=False).encode("ascii")


def head(raw: bytes, where: str) -> Head:
    """Read a head. Raises AjError when it is damaged or of a newer release."""
    return _load(Head, raw, where)


def manifest(raw: bytes, where: str) -> Manifest:
    """Read a manifest. Raises AjError when it is damaged, of a newer release, or names what leads out of its folder."""
    found = _load(Manifest, raw, where)
    try:
        for name in (*(entry.name for entry in found.files), *found.folders, *(name for name, _ in found.links)):
            check_name(name)
        if not all(_SHA.match(entry.sha256) for entry in found.files):
            raise UserError("a file has no hash")
    except UserError as error:
        raise _damaged(where, error.message) from error
    return found


def _load(kind: type[LOADED], raw: bytes, where: str) -> LOADED:
    try:
        value: Json = json.loads(raw)
        if isinstance(value, Mapping) and _version(value) > SCHEMA:
            raise AjError(f"{where} was written by a newer release", code="newer-record", hint="upgrade `aj`")
        return codec.load(kind, value, where=where, lenient=True)
    except (ValueError, UserError) as error:
        raise _damaged(where, str(error)) from error


def _version(value: Mapping[str, Json]) -> int:
    found = value.get("schema_version", SCHEMA)
    return found if isinstance(found, int) else SCHEMA


def _damaged(where: str, why: str) -> AjError:
    return AjError(f"{where} is damaged: {why}", code="damaged-checkpoint")


def named(manifests: Sequence[Manifest]) -> set[str]:
    """Return the names of all objects that some checkpoints need."""
    return {blob(entry.sha256) for one in manifests for entry in one.files}
