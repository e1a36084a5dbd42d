"""Which of a template's lines failed: how bash is made to note it, and what is said of it.

All lines run as one script, so a construct may span several of them and nothing stands between them. Only
bash can tell where it stopped, and not for a plain `exit`; then nothing is said of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aj.base import redact
from aj.model import words

SHOWN = 200  # characters of a line; it stands in the message of a job
# A file that is sourced and a function count for the line that calls them.
NOTE_LINE = "[[ $- != *e* ]] || { aj_at=${BASH_LINENO[*]: -1}; aj_at=${aj_at:-$LINENO}; }"
KEEP_LINE = '[[ $? = 0 ]] || echo "${aj_at:-${BASH_LINENO[*]: -1}}" > "$aj_mark"'


def is_bash(shell: str) -> bool:
    """Tell whether a shell is bash, by its name."""
    return shell.rpartition("/")[2] == "bash"


def script(lines: Sequence[str], shell: str, mark: str, *, before: str = "", after: str = "") -> str:
    """Return shell text that runs the lines and stops at one that fails, noting its number in the file `mark`.

    `before` runs first and `after` last; everything before the lines stands in the first line of the text.
    """
    head = [before, "set -e"]
    if is_bash(shell):
        head += [f"aj_mark={words.quote(mark)}", f"trap '{NOTE_LINE}' ERR", f"trap '{KEEP_LINE}' EXIT"]
    return "\n".join(["; ".join(part for part in head if part), *lines, *([after] if after else [])])


def failed(mark: str, lines: Sequence[str]) -> tuple[int, str] | None:
    """Return which line failed, counted from 1, and its words without secrets; None when that is not known."""
    try:
        at = int(Path(mark).read_text()) - 2  # the lines begin in the second line of the text
    except (OSError, ValueError):
        return None
    for number, line in enumerate(lines, start=1):
        at -= line.count("\n") + 1
        if at < 0:
            return number, redact.text(line.strip().partition("\n")[0])[:SHOWN]
    return None
