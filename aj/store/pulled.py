"""What the last pull or push of a project's templates left: the repository, its commit, a digest for each file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.store import atomic
from aj.store.layout import Layout


@dataclass(frozen=True)
class Pulled:
    """The state in which project and repository were last the same. `files` are digests by path."""

    repository: str
    commit: str | None
    files: Mapping[str, str] = field(default_factory=dict)


def file_of(layout: Layout, key: str) -> Path:
    """Return the file of a project's record."""
    return layout.state / "templates" / f"{key}.json"


def note_of(layout: Layout, key: str) -> Path:
    """Return where a pull that changes the files of a project says so before it begins."""
    return layout.state / "templates" / f"{key}.changes.json"


def take_back(layout: Layout, project: Project) -> bool:
    """Take back what a pull that was killed had done to a project's files; tell whether there was any. Raises AjError.

    It costs a look for one file where there is none.
    """
    note = note_of(layout, project.key)
    if not note.exists():
        return False
    from aj.store import changes, lock

    with lock.held(lock_of(layout, project.key)):
        return changes.take_back(project.directory, note)


def lock_of(layout: Layout, key: str) -> Path:
    """Return the lock of who changes the shared files of a project."""
    return layout.state / "locks" / f"{key}.templates.lock"


def read(layout: Layout, key: str) -> Pulled | None:
    """Return the record; None when there is none, or none that can be read: then every file counts as edited."""
    try:
        found = json.loads(file_of(layout, key).read_bytes())
        files = {str(path): str(digest) for path, digest in found["files"].items()}
        commit = found["commit"]
        return Pulled(str(found["repository"]), commit if isinstance(commit, str) else None, files)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def write(layout: Layout, key: str, pulled: Pulled) -> None:
    """Keep the record. Raises AjError when the disk refuses."""
    layout.prepare()
    file = file_of(layout, key)
    atomic.make_folder(file.parent)
    body = {"repository": pulled.repository, "commit": pulled.commit, "files": dict(pulled.files)}
    atomic.write_json(file, body)
