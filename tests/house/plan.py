"""The plan of the house as `aj/__init__.py` carries it: `python -m tests.house.plan` writes it anew.

Floors stand here in words; the line of a room is the opening of its own first sentence, so that the
plan says what the rooms say.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2] / "aj"
FRONT = HOUSE / "__init__.py"
SHORT, LONG = 14, 90  # of the words about a room
# From the ground up: one may walk down these stairs, never up, and never to a neighbour.
FLOORS = (
    ("base", "the ground: imports nothing of ours"),
    ("model", "nouns: frozen values without input, output or a clock"),
    ("wire", "the contract of the socket"),
    ("store", "the door to the disk"),
    ("net", "the door to the network"),
    ("azure", "Azure, one verb a function"),
    ("kube", "Kubernetes, one verb a function"),
    ("bucket", "object storage to folders and back"),
    ("template", "YAML to a JobSpec"),
    ("pack", "a code tree to an archive"),
    ("backend", "the places that run jobs, a folder each"),
    ("engine", "what the product does; only inside the daemon"),
    ("daemon", "the started process"),
    ("daemon/routes", "its routes, one room a noun"),
    ("client", "the caller's side of the socket"),
    ("view", "values to lines"),
    ("cli", "one room a command: `aj queue list` is `cli/queue/list.py`"),
)
OPENING = """Submit and run ML jobs from one file. `from aj import Client` asks the daemon of this user.

The plan of the house, from the ground up. A room imports only rooms that stand above it in this list, and
these are strangers to each other: store and net; template and pack; backends; daemon, client and view.
"""


def sentence(path: Path) -> str:
    """Return the opening of a room's first sentence, as much as fits a line."""
    words = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
    whole = re.split(r"\. |\.$", words)[0]
    opening = re.split(r"[:;]", whole)[0]
    chosen = opening if len(opening) > SHORT else whole
    return chosen if len(chosen) <= LONG else chosen[: chosen.rfind(",", 0, LONG)]


def lines() -> Iterator[str]:
    """Yield the plan line by line."""
    yield from OPENING.splitlines()
    for floor, meaning in FLOORS:
        folder = HOUSE / floor
        if not folder.is_dir():
            continue
        yield ""
        yield f"{floor}/  {meaning}"
        yield from _rooms(folder) if floor != "cli" else ()
    yield ""
    yield "main  the door: the words of the command line in, an exit code out"


def _rooms(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            yield f"    {path.stem:14s} {sentence(path)}".rstrip()
    if folder.name == "backend":
        places = [path for path in sorted(folder.iterdir()) if (path / "__init__.py").exists()]
        for place in places:
            names = " ".join(sorted(room.stem for room in place.glob("[!_]*.py")))
            first, *more = textwrap.wrap(names, LONG) or [""]
            yield f"    {place.name + '/':14s} {first}".rstrip()
            yield from (f"    {'':14s} {line}" for line in more)


def text() -> str:
    """Return the plan as it stands in the front."""
    return "\n".join(lines()) + "\n"


def write() -> None:
    """Write the plan into the front, and leave the rest of it as it is."""
    source = FRONT.read_text()
    rest = source[source.index('"""', 3) + 3 :]
    FRONT.write_text(f'"""{text()}"""{rest}')


if __name__ == "__main__":
    write()
