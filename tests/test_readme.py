"""The tour of the README is typed word for word in one shell, and prints what stands there."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM
from tests.conftest import Home, RunningDaemon
from tests.standin import HOUSE

pytestmark = pytest.mark.usefixtures("programs", "real_clock")

MARK = "@@ tour"
LIMIT_S = 120
# What differs from one day and machine to the next.
VARYING = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+Z|\+00:00)", "TIME"),
    (r"(?<![0-9a-f])[0-9a-f]{8}(?![0-9a-f])", "ID"),
    (r"(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])", "DIGEST"),
    (r"(?<= )/\S+", "/PATH"),
    (r"^no `uv` on the job's PATH.*", ""),
    (r"\b\d+s\b", "AGE"),
    (r"[ \t]+", " "),
)


def tour() -> list[tuple[str, list[str]]]:
    """Each command of the tour, with the lines that stand below it."""
    text = (HOUSE / "README.md").read_text()
    text = text[text.index("## A tour") : text.index("## A project of your own")]
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append((re.sub(r"\s+# .*$", "", line.removeprefix("    $ ")), []))
        elif line.startswith("    ") and found:
            found[-1][1].append(line.strip())
        elif not line and found and found[-1][1]:
            found[-1][1].append("")
    return [(command, "\n".join(lines).strip().splitlines()) for command, lines in found]


def plain(lines: list[str]) -> list[str]:
    """Lines without what varies, as people see them."""
    found = []
    for line in lines:
        for pattern, word in VARYING:
            line = re.sub(pattern, word, line)
        found.append(line.strip())
    return [line for line in found if line]


def is_told(wanted: list[str], given: list[str]) -> bool:
    """Whether lines are those that are wanted, where `...` stands for any."""
    pattern = "".join("(.*\n)*" if line == "..." else re.escape(line) + "\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in given)) is not None


def typed(script: str, folder: Path, env: Mapping[str, str]) -> str:
    """Run a script at a terminal of its own; return all that appears there."""
    ours, theirs = os.openpty()
    try:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
        )
    finally:
        os.close(theirs)
    found, limit = bytearray(), SYSTEM.monotonic() + LIMIT_S
    while SYSTEM.monotonic() < limit:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # nobody has it open any more
            break
        found += piece
    os.close(ours)
    shell.kill()
    shell.wait()
    return found.decode().replace("\r\n", "\n")


@pytest.mark.timeout(240)
def test_the_tour_works_as_it_is_written(home: Home, daemon: RunningDaemon, tmp_path: Path) -> None:
    project = tmp_path / "proj"
    project.mkdir()
    env = dict(home.settings.env)
    env |= {
        "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }
    steps = tour()
    assert len(steps) > 20
    script: list[str] = []
    first = re.search(r"id\s+([0-9a-f]{8})", "\n".join(line for _, lines in steps for line in lines))
    assert first is not None
    for number, (command, _) in enumerate(steps):
        said = command.replace(first[1], "$first")
        script += [f"echo '{MARK} {number}'", said, f"code=$?; echo; echo '{MARK} code' $code"]
        if number == 1:
            script.append("first=$(aj list -n 1 -o name)")
    told = typed("\n".join(script), project, env)
    parts = re.split(rf"{MARK} (\d+)\n", told)[1:]
    assert len(parts) == 2 * len(steps), told[-2000:]
    for (command, wanted), part in zip(steps, parts[1::2]):
        given, _, code = part.rpartition(f"\n{MARK} code ")
        assert code.split()[0] == "0", f"{command}\n{part}"
        if wanted:
            assert is_told(plain(wanted), plain(given.splitlines())), f"{command}\n{given}"
