"""Several files of one folder changed together: all of them, or none.

New files are written beside their places first; then each old one steps aside and the new one takes its place. When
anything fails on the way, every step is taken back. With a `note` that holds for a killed process, too: what it was
about to do stands there before the first step, and whoever comes next takes it back.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aj.base import crash
from aj.base.digest import sha256
from aj.base.errors import AjError, Refused
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.store import atomic

_OURS = re.compile(rf"\.[0-9]+\.[0-9a-f]{{12}}\.(new|old){re.escape(atomic.PART)}\Z")


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


def apply(folder: Path, changes: Sequence[Change], note: Path | None = None) -> dict[str, Path]:
    """Make the changes and return where old files were kept, by path. One at a time may have a `note`.

    Raises Refused when a file is not what it was when the change was planned, or lies behind a link; AjError when
    the disk refuses. Nothing has changed then.
    """
    undo = contextlib.ExitStack()
    if note is not None:
        take_back(folder, note)
        _sweep({(folder / change.path).parent for change in changes})
    with undo:
        staged = [(change, _staged(folder, change, undo), _aside(folder, change)) for change in changes]
        if note is not None:
            undo.callback(_forget, note)
            _write_down(note, staged, is_over=False)
            crash.point("changes.after-note")
        kept: dict[str, Path] = {}
        gone: list[Path] = []
        for change, new, aside in staged:
            _take_place(folder, change, new, aside, undo, kept, gone)
            crash.point("changes.after-step")
        for parent in {(folder / change.path).parent for change in changes}:
            with contextlib.suppress(OSError):  # durable as far as this file system can
                atomic.sync_folder(parent)
        if note is not None:
            _write_down(note, staged, is_over=True)
            crash.point("changes.after-all")
        undo.pop_all()
    for old in gone:
        with contextlib.suppress(OSError):  # its place is taken: what is left of it does no harm
            old.unlink()
    if note is not None:
        with contextlib.suppress(AjError):  # it says that all is done, and the next one removes it
            atomic.remove(note)
    return kept


def take_back(folder: Path, note: Path) -> bool:
    """Take back the changes of a process that was killed on the way; tell whether there were any.

    Raises AjError when the disk refuses; the note stays then.
    """
    try:
        value = json.loads(note.read_bytes())
        steps, is_over = [_read(step) for step in value["steps"]], bool(value["over"])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, TypeError, KeyError):
        steps, is_over = [], False  # it never came to a whole note, and so to no step
    try:
        for step in [] if is_over else reversed(steps):
            _step_back(folder, step)
    except OSError as error:
        raise atomic.cannot_write(folder, error) from error
    atomic.remove(note)
    _sweep({(folder / step.path).parent for step in steps})
    return bool(steps) and not is_over


@dataclass(frozen=True)
class _Step:
    """What stands in a note: a path, the new file beside it and its digest, the name to which the old one goes."""

    path: str
    new: str | None
    digest: str | None
    aside: str | None


def _read(value: Sequence[object]) -> _Step:
    path, *names = (word if word is None or isinstance(word, str) else str(word) for word in value)
    if path is None:
        raise TypeError("a step without a path")
    return _Step(path, *names)


def _write_down(note: Path, staged: Sequence[tuple[Change, Path | None, Path | None]], *, is_over: bool) -> None:
    atomic.make_folder(note.parent)
    digests = [None if change.data is None else sha256(change.data).hexdigest() for change, _, _ in staged]
    steps: list[Json] = [
        [change.path, new.name if new else None, digest, aside.name if aside else None]
        for (change, new, aside), digest in zip(staged, digests)
    ]
    atomic.write_json(note, {"steps": steps, "over": is_over})


def _step_back(folder: Path, step: _Step) -> None:
    target = folder / step.path
    new = target.with_name(step.new) if step.new is not None else None
    aside = target.with_name(step.aside) if step.aside is not None else None
    had_come = new is not None and not os.path.lexists(new)
    if os.path.lexists(target) and had_come and not _is_as_written(target, step.digest):
        os.rename(target, _free(target))  # somebody has gone on from there
    if aside is not None and os.path.lexists(aside):
        os.replace(aside, target)
    elif aside is None and had_come:
        target.unlink(missing_ok=True)


def _is_as_written(path: Path, digest: str | None) -> bool:
    return path.is_file() and sha256(path.read_bytes()).hexdigest() == digest


def _sweep(folders: Iterable[Path]) -> None:
    """Remove what a killed process left beside the files, once its note is gone."""
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as listed:
            for entry in listed:
                if _OURS.match(entry.name):
                    os.unlink(entry.path)


def _aside(folder: Path, change: Change) -> Path | None:
    """Return where the old file goes; None where there is none."""
    target = folder / change.path
    if not os.path.lexists(target):
        return None
    return _free(target) if change.keeps else target.with_name(f".{os.getpid()}.{os.urandom(6).hex()}.old{atomic.PART}")


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
    aside: Path | None,
    undo: contextlib.ExitStack,
    kept: dict[str, Path],
    gone: list[Path],
) -> None:
    target = folder / change.path
    old: Path | None = None
    try:
        if aside is not None and os.path.lexists(target):
            old = aside
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
