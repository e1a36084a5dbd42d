"""Trees for tests: planted from a dictionary, watched for what is opened, and seen by a user without rights."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aj.model.code import CodePlan, IgnoreLine
from aj.pack import walk
from aj.pack.selection import Selection

NOBODY = 65534


@dataclass(frozen=True)
class Link:
    """A link to plant."""

    target: str | bytes


Planted = Mapping[str | bytes, str | bytes | Link]


def plant(root: Path, entries: Planted) -> Path:
    """Make files, links, and folders (names that end in a slash) below a root."""
    base = os.fsencode(root)
    os.makedirs(base, exist_ok=True)
    for name, what in entries.items():
        path = base + b"/" + (name if isinstance(name, bytes) else name.encode())
        if path.endswith(b"/"):
            os.makedirs(path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(what, Link):
            os.symlink(what.target if isinstance(what.target, bytes) else what.target.encode(), path)
        else:
            with open(path, "wb") as out:
                out.write(what if isinstance(what, bytes) else what.encode())
    return root


def plan(root: Path, *patterns: str, **more: object) -> CodePlan:
    """A plan for a root, with template patterns that stand in `t.yaml` from line 1 on."""
    lines = tuple(IgnoreLine(pattern, f"t.yaml:{number}") for number, pattern in enumerate(patterns, start=1))
    return CodePlan(str(root), lines, **more)  # type: ignore[arg-type]


def names(root: Path, *patterns: str, **more: object) -> list[bytes]:
    """The paths that are selected."""
    return list(walk.select(plan(root, *patterns, **more)).paths)


def told(selection: Selection) -> list[str]:
    """The messages of all warnings."""
    return [warning.message for warning in selection.warnings]


_WATCHING: list[list[bytes]] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _WATCHING and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        _WATCHING[-1].append(os.fsencode(arguments[0]))


sys.addaudithook(_audit)


@contextmanager
def opened(root: Path) -> Iterator[list[bytes]]:
    """Gather what is opened below a root by any means of Python, folders apart; complete after the block."""
    every: list[bytes] = []
    found: list[bytes] = []
    _WATCHING.append(every)
    try:
        yield found
    finally:
        _WATCHING.pop()
    found += [path for path in every if path.startswith(os.fsencode(root)) and not os.path.isdir(path)]


def open_folder() -> Path:
    """A new folder that every user may enter; the caller removes it."""
    folder = Path(tempfile.mkdtemp(prefix="aj-pack-"))
    folder.chmod(0o755)
    return folder


def as_nobody(act: Callable[[], object]) -> object:
    """Do something in a child process as a user without rights, and return its result or raise its exception."""
    if os.geteuid() != 0:
        return act()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn when a test worker has threads
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer: tuple[str, object] = ("result", act())
        except BaseException as error:
            answer = ("error", (type(error).__name__, str(error)))
        with os.fdopen(writing, "wb") as out:
            pickle.dump(answer, out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as source:
        kind, value = pickle.load(source)
    os.waitpid(child, 0)
    if kind == "error":
        raise AssertionError(value)
    return value
