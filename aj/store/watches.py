"""Watches on disk, a file each. Written by the daemon alone; anybody may look."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from aj.base.digest import sha256
from aj.base.errors import AjError
from aj.model.watch import Watch
from aj.store import atomic
from aj.store.layout import Layout
from aj.wire import codec


def write(layout: Layout, watch: Watch) -> None:
    """Keep a watch as it stands now. Raises AjError when the disk refuses."""
    path = _path(layout, watch.project, watch.id)
    atomic.make_folder(path.parent)
    atomic.write_json(path, codec.dump(watch))


def remove(layout: Layout, project: str, job_id: str) -> bool:
    """Forget a watch; whether there was one."""
    try:
        _path(layout, project, job_id).unlink()
    except FileNotFoundError:
        return False
    return True


def each(layout: Layout, damaged: Callable[[str], None]) -> Iterator[Watch]:
    """Yield every watch; of a file that cannot be read `damaged` is told, and the others are read."""
    for path in _files(layout.watches):
        try:
            yield codec.load(Watch, codec.parse(path.read_bytes().decode()), lenient=True)
        except FileNotFoundError:
            continue  # it was removed just now
        except (AjError, OSError, ValueError) as error:
            damaged(f"{path} cannot be read: {error}")


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as listed:
        return sorted(Path(entry) for entry in listed if entry.name.endswith(".json"))
    return []


def _path(layout: Layout, project: str, job_id: str) -> Path:
    """A name of any form has a file name of one form."""
    return layout.watches / f"{sha256(f'{project} {job_id}'.encode()).hexdigest()[:24]}.json"
