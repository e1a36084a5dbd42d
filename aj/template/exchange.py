"""What a pull or a push would change: three listings to a plan. Nothing is read or written here.

`base` are the digests of what the last pull or push left: a file that has another one by now was edited here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from aj.base.noun import dataclass
from aj.template.shared import File


class Kind(StrEnum):
    """What happens to a file."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"


@dataclass(frozen=True)
class Change:
    """One file that would change. `is_edited`: what would be lost is nowhere else."""

    path: str
    kind: Kind
    old: File | None
    new: File | None
    is_edited: bool = False


def pull(remote: Mapping[str, File], local: Mapping[str, File], base: Mapping[str, str]) -> list[Change]:
    """Return what makes the local files those of the repository; files that never came from there stay."""
    found = []
    for path in sorted({*remote, *base}):
        new, old, known = remote.get(path), local.get(path), base.get(path)
        if new is None and old is not None:
            found.append(Change(path, Kind.DELETED, old, None, is_edited=old.digest != known))
        elif new is not None and old is None:
            found.append(Change(path, Kind.ADDED, None, new))
        elif new is not None and old is not None and new != old:
            found.append(Change(path, Kind.UPDATED, old, new, is_edited=old.digest != known))
    return found


def push(remote: Mapping[str, File], local: Mapping[str, File]) -> list[Change]:
    """Return what makes the files of the repository the local ones."""
    found = []
    for path in sorted({*remote, *local}):
        old, new = remote.get(path), local.get(path)
        if old != new:
            kind = Kind.ADDED if old is None else Kind.DELETED if new is None else Kind.UPDATED
            found.append(Change(path, kind, old, new))
    return found


def moved(remote: Mapping[str, File], local: Mapping[str, File], base: Mapping[str, str]) -> list[str]:
    """Return the paths that changed in the repository since the last pull or push, and are not the same here."""
    paths = sorted({*remote, *base})
    now = {path: remote[path].digest if path in remote else None for path in paths}
    return [path for path in paths if now[path] != base.get(path) and remote.get(path) != local.get(path)]


def diff(remote: Mapping[str, File], local: Mapping[str, File]) -> tuple[list[str], str]:
    """Return the paths that differ, and the unified difference from `remote/` to `local/`."""
    changes = push(remote, local)
    return [change.path for change in changes], "".join(_diff(change) for change in changes)


def _diff(change: Change) -> str:
    import difflib  # 3 ms, only for a difference

    names = [
        f"{side}/{change.path}" if file else "/dev/null"
        for side, file in (("remote", change.old), ("local", change.new))
    ]
    try:
        old, new = (_lines(file) for file in (change.old, change.new))
    except UnicodeDecodeError:
        return f"Binary files {names[0]} and {names[1]} differ\n"
    words = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, names[0], names[1])
    )
    modes = [_mode(file) for file in (change.old, change.new)]
    if change.old and change.new and modes[0] != modes[1]:
        words = f"old mode {modes[0]}\nnew mode {modes[1]}\n{words}"
    return words or f"--- {names[0]}\n+++ {names[1]}\n"


def _lines(file: File | None) -> list[str]:
    return file.data.decode("utf-8").splitlines(keepends=True) if file else []


def _mode(file: File | None) -> str:
    return "100755" if file and file.is_executable else "100644"
