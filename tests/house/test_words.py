"""The project speaks of itself alone: no path of a machine, no unfinished work, no secret."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|NotImplemented" r"Error)\b")
MACHINE = re.compile(r"(?<![\w.<>*{}-])(?:/wor" r"k/|/far" r"m/)|/root/\.py" r"env")
SECRET = re.compile(r"(?i)(accountkey=[a-z0-9+/]{40,}|sig=[a-z0-9%]{30,}|-----BEGIN [A-Z ]*PRIVATE KEY)")


def tracked() -> list[Path]:
    found = subprocess.run(["git", "ls-files", "-z"], cwd=HOUSE, capture_output=True, check=True, timeout=30)
    return [HOUSE / name for name in found.stdout.decode().split("\0") if name]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in tracked():
        if not path.is_file() or "specs" in path.parts:
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        found += [
            f"{path.relative_to(HOUSE)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(text.splitlines(), start=1)
            if pattern.search(line)
        ]
    return found


def test_no_unfinished_work() -> None:
    assert lines_with(UNFINISHED) == []


def test_no_path_of_a_machine() -> None:
    assert lines_with(MACHINE) == []


def test_no_secret_is_kept() -> None:
    assert lines_with(SECRET) == []
