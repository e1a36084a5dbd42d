"""What keeps a tree from being packed: all of it in one error, with the line that would leave it out."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from enum import StrEnum

from aj.base import text
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.pack import ignore
from aj.pack.selection import shown

TOLD_AT_MOST = 20  # a screen; the rest is counted
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
}


class Ground(StrEnum):
    """Why an entry cannot be packed."""

    KIND = "kind"
    LINK = "link"
    PERMISSION = "permission"
    CHANGED = "changed"


@dataclass(frozen=True)
class Offence:
    """One entry that cannot be packed; `reason` continues its name to a sentence."""

    path: bytes
    reason: str
    ground: Ground


def kind(mode: int) -> str:
    """Name what is neither a file, a folder nor a link."""
    return _KINDS.get(stat.S_IFMT(mode), "no file, folder or link")


def error(offences: Sequence[Offence], ignore_file: str | None) -> UserError:
    """Make the one error that names all offences."""
    told = [f"`{shown(found.path)}` {found.reason}" for found in offences[:TOLD_AT_MOST]]
    rest = len(offences) - len(told)
    words = "; ".join(told) + (f"; and {rest} more" if rest else "")
    if len(offences) > 1:
        words = f"{text.plural(len(offences), 'entry', 'entries')} cannot be packed: {words}"
    return UserError(
        words,
        code="cannot-pack",
        hint=_remedy(offences[0], ignore_file or ".codeignore"),
        details={"offences": [{"path": shown(found.path), "reason": found.reason} for found in offences]},
    )


def _remedy(found: Offence, ignore_file: str) -> str:
    line = f"add `{shown(ignore.line_for(found.path.removesuffix(b'/'), is_folder=found.path.endswith(b'/')))}`"
    leave_out = f"{line} to {ignore_file}"
    if found.ground is Ground.LINK:
        return f"{leave_out}, copy what it points to, or make the link relative and within the tree"
    if found.ground is Ground.PERMISSION:
        return f"`chmod u+r` it, or {leave_out}"
    if found.ground is Ground.CHANGED:
        return f"wait until nothing writes it, or {leave_out}"
    return leave_out
