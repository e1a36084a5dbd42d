"""A script that the command line names and that does not travel: it is not there, or it lies elsewhere.

A job of this machine that would surely not find it is refused. Elsewhere an image may have a program of
that name, and lines that run before the command may make one, so it is only told.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aj.base import text
from aj.base.errors import UserError
from aj.template import issue
from aj.template.issue import Issue

EXTENSIONS = (".py", ".sh")


def check(argv: Sequence[str], directory: Path, *, path: str | None, may_be_made: bool) -> list[Issue]:
    """Look at the first word; return a warning when it names a script that does not travel.

    `path` is the job's PATH when it runs on this machine, else None; `may_be_made` says that lines run
    before the command. Raises UserError when nothing of that name can be there.
    """
    word = argv[0] if argv else ""
    fault = _fault(word, directory, is_here=path is not None)
    if fault is None or (path is not None and is_found(word, path)):
        return []
    if path is None or may_be_made:
        return [issue.warning(fault, code="no-such-file")]
    raise UserError(
        fault, hint="the job runs in a copy of the directory: start from one that holds the file", code="no-such-file"
    )


def is_found(word: str, path: str) -> bool:
    """Tell whether a shell with this PATH finds a program; a relative path names nothing in the job's folder."""
    if "/" in word:
        return os.path.isabs(word) and _is_program(word)
    return any(_is_program(f"{folder}/{word}") for folder in path.split(os.pathsep) if folder)


def _is_program(file: str) -> bool:
    return os.path.isfile(file) and os.access(file, os.X_OK)


def _fault(word: str, directory: Path, *, is_here: bool) -> str | None:
    """Say what is wrong with a word that looks like a script, or None."""
    if os.path.splitext(word)[1].lower() not in EXTENSIONS:
        return None
    there = directory / word
    if not there.exists():
        # an absolute path may well be there in the image of another place
        return _missing(word, there, directory) if is_here or not os.path.isabs(word) else None
    if not there.is_file():
        return f"`{word}` is not a regular file"
    if Path(os.path.realpath(there)).is_relative_to(os.path.realpath(directory)):
        return None
    return f"`{word}` lies outside of {directory}, the directory that is sent: it resolves to {os.path.realpath(there)}"


def _missing(word: str, there: Path, directory: Path) -> str:
    near = _nearest(there)
    told = f"; the nearest is `{word.removesuffix(there.name)}{near}`" if near else ""
    return f"there is no file `{word}` in {directory}{told}"


def _nearest(there: Path) -> str | None:
    try:
        with os.scandir(there.parent) as listed:
            names = [entry.name for entry in listed if entry.is_file()]
    except OSError:
        return None  # not even its folder is there
    scripts = [name for name in names if os.path.splitext(name)[1].lower() in EXTENSIONS]
    return text.nearest(there.name, scripts) or text.nearest(there.name, names)
