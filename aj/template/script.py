"""A file that the command line names and that does not travel: it is not there, or it lies elsewhere.

A job of this machine that would surely not find it is refused. Elsewhere an image may have a program of
that name, and lines that run before the command may make one, so it is only told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from aj.base import text
from aj.base.errors import UserError
from aj.model import words
from aj.template import issue
from aj.template.issue import Issue

EXTENSIONS = (".py", ".sh")  # of files that run by themselves
_EXTENSION = r"\.[A-Za-z][A-Za-z0-9]*\Z"  # `.ipynb` and `.R`, and not the end of `python3.11`


def check(argv: Sequence[str], directory: Path, *, path: str | None, may_be_made: bool) -> list[Issue]:
    """Look at the first word; return a warning when it looks like a file and that does not travel.

    `path` is the job's PATH when it runs on this machine, else None; `may_be_made` says that lines run
    before the command. Raises UserError when nothing of that name can be there.
    """
    word = argv[0] if argv else ""
    fault = _fault(word, directory, is_here=path is not None)
    if fault is None or (path is not None and is_found(word, path)):
        return []
    if path is None or may_be_made:
        return [issue.warning(fault, code="no-such-file")]
    hint = "the job runs in a copy of the directory: start from one that holds the file"
    if re.search(r"\s", word):
        hint = f"a shell line is `bash -c {words.quote(word)}`, and several words stand without quotes around them all"
    raise UserError(fault, hint=hint, code="no-such-file")


def is_found(word: str, path: str) -> bool:
    """Tell whether a shell with this PATH finds a program; a relative path names nothing in the job's folder."""
    if "/" in word:
        return os.path.isabs(word) and _is_program(word)
    return any(_is_program(f"{folder}/{word}") for folder in path.split(os.pathsep) if folder)


def _is_program(file: str) -> bool:
    return os.path.isfile(file) and os.access(file, os.X_OK)


def _looks_like_a_file(word: str) -> bool:
    return "/" in word or re.search(_EXTENSION, os.path.splitext(word)[1]) is not None


def _fault(word: str, directory: Path, *, is_here: bool) -> str | None:
    """Say what is wrong with a word that looks like a file, or None."""
    if not _looks_like_a_file(word):
        return None
    there = directory / word
    if not is_here and os.path.isabs(word):
        # it may well be in the image of another place; a script that is here was most likely meant
        return _outside(word, there, directory) if _is_script(word) and there.is_file() else None
    if not there.exists():
        return _missing(word, there, directory)
    if not there.is_file():
        return f"`{word}` is not a regular file"
    return _outside(word, there, directory)


def _is_script(word: str) -> bool:
    return os.path.splitext(word)[1].lower() in EXTENSIONS


def _outside(word: str, there: Path, directory: Path) -> str | None:
    """Say that a file is not below the directory; a link in there to a program elsewhere travels as a link."""
    root, real = os.path.realpath(directory), os.path.realpath(there)
    lexical = os.path.normpath(f"{root}/{word}") if not os.path.isabs(word) else os.path.normpath(word)
    if Path(real if _is_script(word) else lexical).is_relative_to(root):
        return None
    return f"`{word}` lies outside of {directory}, the directory that is sent: it resolves to {real}"


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
