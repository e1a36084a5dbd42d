"""What a project shares with others through a repository, and what never leaves it.

Shared are the folders of templates and their components, the scripts, folders of YAML files, and a README. Settings,
submissions, journals and logs are not, whatever folder they lie in. Links and everything else that is no plain file
are refused on both sides, before anything is written.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from aj.base import text
from aj.base.errors import AjError, Refused
from aj.base.noun import dataclass

FOLDERS = ("template", "account", "environment", "storage", "scripts")
NEVER = frozenset({"aj.toml", "aj_config.json", "submission", "record.jsonl", "logs", "daemon", ".git"})
MOST_FILES = 5_000  # a project has dozens; more is a mistake of the address
MOST_BYTES = 32 << 20
_README = re.compile(r"readme(\.[a-z]{1,8})?\Z", re.IGNORECASE)
_FOLDER = re.compile(r"[A-Za-z0-9_-]+\Z")
_LEFT = re.compile(r".*\.orig-\d+\Z|.*\.part\Z|.*~\Z|__pycache__\Z|.*\.pyc\Z|\..*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_KINDS = {"120000": "a link", "160000": "a submodule"}


@dataclass(frozen=True)
class File:
    """One shared file."""

    data: bytes
    is_executable: bool = False

    @property
    def digest(self) -> str:
        """The SHA-256 of its bytes, and whether it is a program."""
        return hashlib.sha256(self.data).hexdigest() + ("+x" if self.is_executable else "")


def is_shared(path: str) -> bool:
    """Tell whether a path below the project directory is shared."""
    parts = path.split("/")
    if any(part.casefold() in NEVER or _LEFT.match(part) for part in parts):
        return False
    if len(parts) == 1:
        return bool(_README.match(parts[0]))
    if parts[0] in FOLDERS:
        return True
    return len(parts) == 2 and bool(_FOLDER.match(parts[0])) and parts[1].endswith(".yaml")


def wanted(entries: Iterable[tuple[str, bytes, int]], where: str) -> list[str]:
    """Return the shared paths among the entries (mode, path, bytes) of a repository, checked.

    Raises Refused naming every path that is a link, a submodule, or leads out of the project.
    """
    found, wrong, size = [], [], 0
    for mode, raw, count in entries:
        path = os.fsdecode(raw)
        if fault := _KINDS.get(mode) or _fault(path):
            wrong.append(f"{path} is {fault}")
        elif is_shared(path):
            found.append(path)
            size += count
    wrong += [f"{path} differs from another one only in capitals" for path in _doubles(found)]
    if wrong:
        raise _refused(where, wrong)
    if len(found) > MOST_FILES or size > MOST_BYTES:
        raise Refused(
            f"{where} has {text.plural(len(found), 'file')} of {size} bytes to share: more than "
            f"{MOST_FILES} files or {MOST_BYTES} bytes are no templates",
            code="too-large",
        )
    return found


def _fault(path: str) -> str | None:
    parts = path.split("/")
    if path.startswith("/") or not all(parts) or any(part in (".", "..") for part in parts):
        return "a path out of the project"
    if "\\" in path or _CONTROL.search(path):
        return "no name of a file"
    if any(part.casefold().rstrip(". ") == ".git" for part in parts):
        return "inside a folder of git"
    return None


def _doubles(paths: Iterable[str]) -> list[str]:
    seen: dict[str, str] = {}
    return [path for path in paths if seen.setdefault(path.casefold(), path) != path]


def _refused(where: str, wrong: list[str]) -> Refused:
    shown = "; ".join(wrong[:10]) + (f"; and {len(wrong) - 10} more" if len(wrong) > 10 else "")
    return Refused(f"{where}: {shown}", hint="nothing was written; plain files alone are shared", code="not-plain")


def read(directory: Path) -> dict[str, File]:
    """Read the shared files of a project, by path. Raises Refused naming links and devices, AjError."""
    wrong: list[str] = []
    found = dict(_walk(directory, "", wrong))
    if wrong:
        raise _refused(str(directory), wrong)
    return dict(sorted(found.items()))


def _walk(folder: Path, prefix: str, wrong: list[str]) -> Iterator[tuple[str, File]]:
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if _LEFT.match(entry.name) or entry.name.casefold() in NEVER:
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            if path.split("/")[0] in FOLDERS or (not prefix and _FOLDER.match(entry.name)):
                yield from _walk(Path(entry.path), f"{path}/", wrong)
        elif is_shared(path) or (stat.S_ISLNK(mode) and path in FOLDERS):
            if fault := _fault(path) or (None if stat.S_ISREG(mode) else _kind(mode)):
                wrong.append(f"{path} is {fault}")
            else:
                yield path, read_file(Path(entry.path))


def _kind(mode: int) -> str:
    return "a link" if stat.S_ISLNK(mode) else "no plain file"


def read_file(path: Path) -> File:
    """Read one file, never through a link. Raises AjError naming it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return File(file.read(), bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR))
    except OSError as error:
        raise AjError(f"cannot read {path}: {error.strerror}", code="cannot-read") from error


def digests(files: Mapping[str, File]) -> dict[str, str]:
    """Return the digest of each file by its path."""
    return {path: file.digest for path, file in files.items()}
