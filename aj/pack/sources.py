"""Where the ignore rules of a tree come from: the template, and the first ignore file in the root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from aj.base import text
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model.code import CodePlan, CodeWarning
from aj.pack import advice, ignore
from aj.pack.ignore import Rules, Watched

# Shown to the user when selected: an ignore file where none is read, and what is mostly a secret.
KEYS = (b"id_rsa", b"id_dsa", b"id_ecdsa", b"id_ed25519")
PRIVATE = Watched(
    frozenset((b".env", b".netrc", b".npmrc", b".pypirc", b".git-credentials", *KEYS)),
    suffixes=(b".pem", b".pfx", b".p12"),
    prefixes=(b".env.",),
)
SHOWS_HOW = (b".example", b".sample", b".template", b".dist")  # of a `.env` without its values
WATCHED = Watched(frozenset(ignore.FILE_NAMES) | PRIVATE.names, PRIVATE.suffixes, PRIVATE.prefixes)


def private_pattern(name: bytes) -> bytes | None:
    """Return the pattern that leaves a file out which is mostly a secret, None for any other name."""
    if name in PRIVATE.names:
        return name
    for suffix in PRIVATE.suffixes:
        if name.endswith(suffix):
            return b"*" + suffix
    is_private = name.startswith(PRIVATE.prefixes) and not name.endswith(SHOWS_HOW)
    return name if is_private else None


@dataclass(frozen=True)
class Sources:
    """The rules, the ignore file in force (its name in the root, or None), and what to tell the user."""

    rules: Rules
    ignore_file: str | None
    warnings: tuple[CodeWarning, ...]


def read(plan: CodePlan) -> Sources:
    """Read the rules of a tree. Raises UserError when the ignore file in force cannot be read."""
    chosen = ignore.of_template(plan.ignore)
    in_force, warnings = _find(Path(plan.root))
    if in_force is not None:
        chosen += ignore.of_file(_content(Path(plan.root) / in_force), in_force)
    rules = Rules(chosen, watched=WATCHED)
    return Sources(rules, in_force, (*warnings, *_of_project(plan), *advice.about(rules)))


def _find(root: Path) -> tuple[str | None, list[CodeWarning]]:
    """Find the ignore file in force: the first that is a regular file, also through a link."""
    in_force: str | None = None
    warnings = []
    for name in ignore.FILE_NAMES:
        word = os.fsdecode(name)
        kind = _kind(root / word)
        if kind is None:
            continue
        if in_force is not None:
            warnings.append(_unread(word, f"{word} is not read, because {in_force} is there"))
        elif kind != stat.S_IFREG:
            warnings.append(_unread(word, f"{word} is not a file, so it is not read"))
        else:
            in_force = word
    return in_force, warnings


def _kind(path: Path) -> int | None:
    """The kind of what stands at a path, a dangling link being a link; None when there is nothing."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        return stat.S_IFLNK if os.path.lexists(path) else None


def _unread(file: str, message: str) -> CodeWarning:
    return CodeWarning("ignore-file-not-read", message, file)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        shown = text.cell(text.decoded(os.fsencode(path)))
        raise UserError(f"cannot read {shown}: {error.strerror}", hint=f"chmod u+r {shown}") from error


def _of_project(plan: CodePlan) -> list[CodeWarning]:
    """Name the ignore files of the project root when the code root is another folder."""
    if plan.scripts is None:
        return []
    project = Path(plan.scripts).parent.parent
    return [
        _unread(str(path), f"{path} is not read: only the ignore file in {plan.root} counts")
        for path in (project / os.fsdecode(name) for name in ignore.FILE_NAMES)
        if project != Path(plan.root) and path.is_file()
    ]
