"""Several files of one folder changed together: all of them, or none.

New files are written beside their places first; then each old one steps aside and the new one takes its place. When
anything fails on the way, every step is taken back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.store import atomic


@dataclass(frozen=True)
class Change:
    """One file: its path below the folder, and its new bytes (None: it goes).

    `check` is asked about the old file once nobody can change it under its name any more; `keeps` leaves the old
    file as `NAME.orig-N`.
    """

    path: str
    data: bytes | None
    mode: int
    check: Callable[[Path | None], bool]
    keeps: bool = False


def apply(folder: Path, changes: Sequence[Change]) -> dict[str, Path]:
    """Make the changes and return where old files were kept, by path.

    Raises Refused when a file is not what it was when the change was planned, or lies behind a link; AjError when
    the disk refuses. Nothing has changed then.
    """
    undo = contextlib.ExitStack()
    with undo:
        staged = [(change, _staged(folder, change, undo)) for change in changes]
        kept: dict[str, Path] = {}
        gone: list[Path] = []
        for change, new in staged:
            _take_place(folder, change, new, undo, kept, gone)
        undo.pop_all()
    for old in gone:
        with contextlib.suppress(OSError):  # its place is taken: what is left of it does no harm
            old.unlink()
    for parent in {(folder / change.path).parent for change in changes}:
        with contextlib.suppress(OSError):  # durable as far as this file system can
            atomic.sync_folder(parent)
    return kept


def _staged(folder: Path, change: Change, undo: contextlib.ExitStack) -> Path | None:
    """Write the new bytes beside their place."""
    _make_way(folder, change.path, undo)
    if change.data is None:
        return None
    target = folder / change.path
    beside = target.with_name(f".{os.getpid()}.{os.urandom(6).hex()}.new{atomic.PART}")
    undo.callback(_forget, beside)
    atomic.write_bytes(beside, change.data, mode=change.mode)
    return beside


def _make_way(folder: Path, path: str, undo: contextlib.ExitStack) -> None:
    """Make the folders above a file. Raises Refused when one of them is a link or a file."""
    here = folder
    for part in path.split("/")[:-1]:
        here = here / part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            raise Refused(f"{here} is no plain folder", hint="move it away", code="not-plain")
        if not here.exists():
            try:
                here.mkdir()
            except OSError as error:
                raise atomic.cannot_write(here, error) from error
            undo.callback(_remove_empty, here)


def _take_place(
    folder: Path,
    change: Change,
    new: Path | None,
    undo: contextlib.ExitStack,
    kept: dict[str, Path],
    gone: list[Path],
) -> None:
    target = folder / change.path
    old: Path | None = None
    try:
        if os.path.lexists(target):
            old = (
                _free(target)
                if change.keeps
                else target.with_name(f".{os.getpid()}.{os.urandom(6).hex()}{atomic.PART}")
            )
            os.rename(target, old)
            undo.callback(os.replace, old, target)
            if change.keeps:
                kept[change.path] = old
            else:
                gone.append(old)
        if not change.check(old):
            raise Refused(f"{target} was changed just now", hint="look, and try again", code="changed-meanwhile")
        if new is not None:
            os.rename(new, target)
            undo.callback(_forget, target)
    except OSError as error:
        raise atomic.cannot_write(target, error) from error


def _free(path: Path) -> Path:
    number = 1
    while os.path.lexists(found := path.with_name(f"{path.name}.orig-{number}")):
        number += 1
    return found


def _forget(path: Path) -> None:
    with contextlib.suppress(OSError):  # on the way back: the error that led here is what is told
        path.unlink(missing_ok=True)


def _remove_empty(path: Path) -> None:
    with contextlib.suppress(OSError):  # somebody else put a file there meanwhile
        path.rmdir()
