"""A kubeconfig that gets one more cluster: merged under a lock, written whole, with the old one kept beside.

The file belongs to the user and other programs write it, too. What stands there and is not ours to change stays.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from aj.base.errors import AjError, ConfigError, Refused
from aj.base.noun import dataclass
from aj.base.paths import Folders
from aj.model.json import Json
from aj.store import atomic, lock

KINDS = ("clusters", "users", "contexts")
BACKUP = ".aj-backup"


@dataclass(frozen=True)
class Merged:
    """A file before and after: whether anything changes, and where the old one is kept (None: there was none)."""

    file: Path
    changed: tuple[str, ...]
    backup: Path | None = None


def entries(file: Path) -> Mapping[str, Json]:
    """Read a kubeconfig; one that is not there is empty. Raises ConfigError at file and line."""
    try:
        value = yaml.safe_load(file.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", code="kubeconfig") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
        raise ConfigError(f"{where}: {getattr(error, 'problem', None) or 'it is no YAML'}", code="kubeconfig") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{file} is no kubeconfig: it holds no mapping", code="kubeconfig")
    return value


def merge(
    folders: Folders,
    file: Path,
    added: Mapping[str, Mapping[str, Json]],
    *,
    current: str | None,
    force: bool,
    dry: bool,
) -> Merged:
    """Put a cluster, a user and a context into a kubeconfig, and make that context the current one.

    `added` has an entry for each of KINDS, `name` among its values. Raises Refused for another entry of the same name
    unless forced, ConfigError on a broken file, AjError when the disk refuses: then the file is as it was.
    """
    path = Path(os.path.realpath(file))
    with lock.held(folders.state / "locks" / "kubeconfig.lock"):
        before = entries(path)
        after, changed = _with(before, added, current, path, force=force)
        if dry or not changed:
            return Merged(path, changed)
        return Merged(path, changed, _write(path, after))


def _with(
    before: Mapping[str, Json], added: Mapping[str, Mapping[str, Json]], current: str | None, path: Path, *, force: bool
) -> tuple[dict[str, Json], tuple[str, ...]]:
    after: dict[str, Json] = {"apiVersion": "v1", "kind": "Config", **before}
    changed = []
    for kind in KINDS:
        entry = dict(added[kind])
        there = after.get(kind) or []
        if not isinstance(there, list | tuple):
            raise ConfigError(f"{path}: `{kind}` is no list", code="kubeconfig")
        same = [one for one in there if isinstance(one, Mapping) and one.get("name") == entry["name"]]
        if same and dict(same[0]) == entry:
            continue
        if same and not force:
            raise Refused(
                f"{path} has another entry {entry['name']} among its {kind}",
                hint="`--context NAME` and `--cluster NAME` choose other names, `--force` replaces it",
                code="kubeconfig-taken",
            )
        after[kind] = [*(one for one in there if one not in same), entry]
        changed.append(f"{kind}: {entry['name']}")
    if current is not None and after.get("current-context") != current:
        after["current-context"] = current
        changed.append(f"current-context: {current}")
    return after, tuple(changed)


def _write(path: Path, after: Mapping[str, Json]) -> Path | None:
    old = path.read_bytes() if path.exists() else None
    backup = path.with_name(path.name + BACKUP) if old is not None else None
    if old is not None and backup is not None:
        atomic.write_bytes(backup, old)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic.write_bytes(path, yaml.safe_dump(dict(after), sort_keys=False, allow_unicode=True).encode())
    try:
        if entries(path) == after:
            return backup
    except ConfigError:
        pass  # said below
    if old is None:
        path.unlink(missing_ok=True)
    else:
        atomic.write_bytes(path, old)
    raise AjError(f"{path} did not read back as it was written; it is as it was before", code="kubeconfig")
