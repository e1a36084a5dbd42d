"""Plays every story: `$ ` is typed, plain lines are stdout, `! ` lines are stderr, `? N` is the exit code.

Within a line `<id>` is an AJ ID that is the same wherever it stands again, `<*>` is anything. A line `= NAME`
begins a file that ends with an empty line. Lines with `#` tell the reader why.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.conftest import Home, RunningDaemon

STORIES = sorted(Path(__file__).parent.glob("*.txt"))


@dataclass
class Step:
    """One command and what is due."""

    line: int
    command: str
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    code: int = 0


@dataclass
class File:
    """A file that is there from now on."""

    name: str
    lines: list[str] = field(default_factory=list)


def read(text: str) -> Iterator[Step | File]:
    """Read a story."""
    current: Step | File | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if isinstance(current, File):
            if line:
                current.lines.append(line)
                continue
            yield current
            current = None
        elif line.startswith("$ "):
            if current:
                yield current
            current = Step(number, line[2:])
        elif line.startswith("= "):
            if current:
                yield current
            current = File(line[2:])
        elif isinstance(current, Step) and not line.startswith("#"):
            _take(current, line)
    if current:
        yield current


def _take(step: Step, line: str) -> None:
    if line.startswith("! "):
        step.err.append(line[2:])
    elif line.startswith("? "):
        step.code = int(line[2:])
    elif line or step.out:
        step.out.append(line)


def pattern(lines: list[str], known: dict[str, str]) -> re.Pattern[str]:
    """Return what fits the due lines; names in `<...>` are bound by the first that fits."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    seen: set[str] = set()

    def piece(word: str) -> str:
        if word == "<*>":
            return ".*"
        if not re.fullmatch("<[a-z]+>", word):
            return re.escape(word)
        name = word[1:-1]
        if name in known:
            return re.escape(known[name])
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>[0-9a-f]{{8}})"

    text = "".join(f"{line}\n" for line in lines)
    return re.compile("".join(piece(word) for word in re.split(r"(<[a-z*]+>)", text)))


def filled(command: str, known: dict[str, str]) -> str:
    """Put what is known into a command."""
    return re.sub("<([a-z]+)>", lambda found: known[found[1]], command)


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_story(story: Path, home: Home, daemon: RunningDaemon) -> None:
    folder = home.root / "project"
    folder.mkdir()
    shell = Shell(home.having(PATH=f"{sys.prefix}/bin:/usr/bin:/bin"), folder)
    known: dict[str, str] = {}
    for step in read(story.read_text(encoding="utf-8")):
        if isinstance(step, File):
            shell.write(step.name, "".join(f"{line}\n" for line in step.lines))
            continue
        program, *words = shlex.split(filled(step.command, known))
        assert program == "aj"
        seen = shell(*words)
        where = f"{story.name}:{step.line}: {step.command}\nstdout:\n{seen.out}\nstderr:\n{seen.err}"
        assert seen.code == step.code, where
        err = seen.err.replace("starting the daemon\n", "")  # said on a slow machine only
        for due, got in ((step.out, seen.out), (step.err, err)):
            fits = pattern(due, known).fullmatch(got)
            assert fits, where
            known |= fits.groupdict()


def test_there_are_stories() -> None:
    assert len(STORIES) >= 5
