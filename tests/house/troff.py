"""Man pages in plain `man` macros, one a command and group, from the same pages that `--help` prints."""

from __future__ import annotations

import re

from aj.base.settings import OURS
from aj.cli import page, tree
from aj.version import RELEASED, VERSION

HEADINGS = {"Exit codes": "EXIT STATUS", "Words": "ARGUMENTS", "Everywhere": "COMMON OPTIONS"}


def escape(words: str) -> str:
    """Escape text for troff: backslash, hyphens that are typed, and a dot or quote that opens a line."""
    words = words.replace("\\", "\\e").replace("-", "\\-").replace("`", "").replace("~", "\\(ti").replace("^", "\\(ha")
    return "\\&" + words if words[:1] in (".", "'") else words


def quoted(words: str) -> str:
    """Escape text that stands in quotes behind a macro."""
    return escape(words).replace('"', "\\(dq")


def file_name(title: str) -> str:
    """`aj queue list` is `aj-queue-list.1`."""
    return title.replace(" ", "-") + ".1"


def section(part: page.Section) -> list[str]:
    """Write one section: rows as tagged paragraphs, lines as an example."""
    out = [f".SH {quoted(HEADINGS.get(part.title, part.title.upper()))}"]
    for term, says in part.rows:
        out += [".TP", f".B {quoted(term)}", escape(says)]
    if part.lines:
        out += [".nf", *(escape(line) for line in part.lines), ".fi"]
    return out


def related(title: str) -> list[str]:
    """Write the pages that a reader may want next."""
    path = tuple(title.split()[1:])
    names = [" ".join(["aj", *path[:-1]])] if path else []
    if path in tree.GROUPS or not path:
        names += [" ".join([title, child]) for child in tree.children(path)]
    rows = [f".BR {escape(file_name(name)[:-2])} (1)" for name in names]
    return [".SH SEE ALSO", *(f"{row} ," for row in rows[:-1]), rows[-1]] if rows else []


def write(found: page.Page) -> str:
    """Write one page."""
    out = [
        f'.TH "{quoted(found.title.replace(" ", "-").upper())}" "1" "{RELEASED}" "aj {VERSION}" "User Commands"',
        ".SH NAME",
        f"{escape(found.title.replace(' ', '-'))} \\- {escape(found.says)}",
        ".SH SYNOPSIS",
        f".B {quoted(found.usage)}",
    ]
    for part in found.sections:
        out += section(part)
    if found.title == "aj":
        out += [".SH ENVIRONMENT"]
        for name, says in OURS.items():
            out += [".TP", f".B {quoted(name)}", escape(says)]
    out += related(found.title)
    return "\n".join(out) + "\n"


def pages() -> dict[str, str]:
    """Return file name -> text for `aj`, every group and every command."""
    return {file_name(found.title): write(found) for found in page.every()}


def commands_of(text: str) -> set[str]:
    """Return the names that a page's NAME section gives; used to check that pages and tree agree."""
    found = re.search(r"\.SH NAME\n(.+?) \\- ", text)
    return {found[1].replace("\\-", "-")} if found else set()
