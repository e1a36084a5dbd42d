"""A copy of a skill in the folder of a coding agent, with a manifest by which it is known again.

What was not written by this room, or was changed since, is never overwritten or removed unless that is wanted; a
link is never followed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from aj.base.errors import AjError, Refused
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.store import atomic, changes
from aj.store.changes import Change

MANIFEST = ".aj-skill.json"


class State(StrEnum):
    """How a copy stands."""

    NOT_INSTALLED = "not_installed"
    CURRENT = "current"
    OUTDATED = "outdated"
    MODIFIED = "modified"
    UNMANAGED = "unmanaged"
    INVALID = "invalid"


@dataclass(frozen=True)
class Copy:
    """A folder for the skill, and how it stands. `files` are digests of what was written there, by name."""

    folder: Path
    state: State
    files: Mapping[str, str]
    why: str | None = None


def look(folder: Path, packaged: Mapping[str, bytes]) -> Copy:
    """Return how a copy of the packaged files stands. Changes nothing."""
    if folder.is_symlink():
        return Copy(folder, State.INVALID, {}, "the folder is a link")
    if not folder.exists():
        return Copy(folder, State.NOT_INSTALLED, {})
    if not folder.is_dir():
        return Copy(folder, State.INVALID, {}, "it is no folder")
    links = [name for name in (MANIFEST, *packaged) if (folder / name).is_symlink()]
    if links:
        return Copy(folder, State.INVALID, {}, f"{links[0]} is a link")
    try:
        files = _manifest(folder)
    except ValueError as error:
        return Copy(folder, State.INVALID, {}, str(error))
    if files is None:
        is_empty = not os.listdir(folder)
        return Copy(folder, State.NOT_INSTALLED if is_empty else State.UNMANAGED, {})
    if any(_digest_at(folder / name) != digest for name, digest in files.items()):
        return Copy(folder, State.MODIFIED, files)
    is_current = files == {name: _digest(data) for name, data in packaged.items()}
    return Copy(folder, State.CURRENT if is_current else State.OUTDATED, files)


def _manifest(folder: Path) -> dict[str, str] | None:
    """Read the digests of what was written; None when nothing was. Raises ValueError."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        raise ValueError(f"{MANIFEST} cannot be read") from None
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict) or not all(map(_fits, files, files.values())):
        raise ValueError(f"{MANIFEST} is not one of ours")
    return {str(name): str(digest) for name, digest in files.items()}


def _fits(name: str, digest: object) -> bool:
    """Tell whether this is the name of a file in the folder itself, with a digest."""
    return isinstance(digest, str) and name == Path(name).name and name not in ("", ".", "..")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_at(path: Path) -> str | None:
    try:
        return None if path.is_symlink() else _digest(path.read_bytes())
    except OSError:
        return None


def write(copy: Copy, packaged: Mapping[str, bytes], version: str, *, force: bool) -> bool:
    """Bring a copy up to date; False when it is. With `force` what others wrote is kept as NAME.orig-N.

    Raises Refused naming what stands in the way, AjError when the disk refuses; nothing has changed then.
    """
    if copy.state is State.CURRENT:
        return False
    _mind(copy, force=force)
    body: dict[str, Json] = {
        "version": version,
        "files": {name: _digest(data) for name, data in packaged.items()},
    }
    files = {**packaged, MANIFEST: json.dumps(body, indent=2).encode() + b"\n"}
    try:
        copy.folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise atomic.cannot_write(copy.folder.parent, error) from error
    gone = [name for name in copy.files if name not in files and os.path.lexists(copy.folder / name)]
    plan = [_change(copy, name, data) for name, data in files.items()] + [_change(copy, name, None) for name in gone]
    changes.apply(copy.folder.parent, plan)
    return True


def remove(copy: Copy, *, force: bool) -> bool:
    """Remove what was written, and the folder when nothing else is in it; False when nothing was.

    Raises Refused for what was changed (unless forced) or was never written here, AjError.
    """
    if copy.state is State.NOT_INSTALLED:
        return False
    if copy.state in (State.UNMANAGED, State.INVALID):
        raise Refused(f"{copy.folder} was not written by aj: {copy.why or 'no manifest'}", hint="remove it by hand")
    _mind(copy, force=force)
    gone = [name for name in (*copy.files, MANIFEST) if os.path.lexists(copy.folder / name)]
    changes.apply(copy.folder.parent, [_change(copy, name, None) for name in gone])
    if not os.listdir(copy.folder):
        copy.folder.rmdir()
    return True


def _mind(copy: Copy, *, force: bool) -> None:
    """Refuse a link always, and what others wrote unless forced. Raises Refused."""
    if copy.state is State.INVALID and (copy.why or "").endswith(("link", "folder")):
        raise Refused(f"{copy.folder}: {copy.why}", hint="move it away", code="not-plain")
    if copy.state in (State.MODIFIED, State.UNMANAGED, State.INVALID) and not force:
        raise Refused(
            f"{copy.folder} is {copy.state.value}: {copy.why or 'somebody else wrote there'}",
            hint="`--force` does it, and keeps what is there as NAME.orig-N",
            code=f"{copy.state.value}-skill",
        )


def _change(copy: Copy, name: str, data: bytes | None) -> Change:
    """Say one file to the disk; what is not as we wrote it is kept."""
    path = copy.folder / name
    is_ours = name == MANIFEST or (name in copy.files and _digest_at(path) == copy.files[name])
    return Change(f"{copy.folder.name}/{name}", data, 0o644, _is_plain, keeps=os.path.lexists(path) and not is_ours)


def _is_plain(old: Path | None) -> bool:
    return old is None or not old.is_symlink()


def failed(error: AjError) -> Json:
    """Return why nothing was done to a copy, as JSON values."""
    return {"type": type(error).__name__, "code": error.code, "message": error.message, "hint": error.hint}
