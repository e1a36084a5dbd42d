"""Generated files are fresh, and man pages are clean to the linter and readable to `man`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from aj.cli import tree
from tests.house import pages, troff

HOUSE = Path(__file__).resolve().parents[2]
MAN = sorted((HOUSE / "man").glob("*.1"))


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: `python -m tests.house setup` as root installs it on Debian")
    return found


def test_generated_files_are_fresh() -> None:
    due = pages.all_pages()
    there = {
        path.relative_to(HOUSE).as_posix(): path.read_text()
        for folder in ("completions", "man")
        for path in (HOUSE / folder).glob("*")
    }
    assert sorted(there) == sorted(due), "run `python -m tests.house docs`"
    assert [name for name in due if there[name] != due[name]] == [], "run `python -m tests.house docs`"


def test_every_command_and_group_has_a_page() -> None:
    named = {name for path in MAN for name in troff.commands_of(path.read_text())}
    assert named == {"aj", *("-".join(("aj", *path)) for path in (*tree.COMMANDS, *tree.GROUPS))}


def test_man_pages_pass_the_linter() -> None:
    program = need("mandoc")
    found = subprocess.run([program, "-T", "lint", "-W", "warning", *MAN], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_every_page_renders() -> None:
    program = need("mandoc")
    for path in MAN:
        found = subprocess.run([program, "-T", "ascii", str(path)], capture_output=True, text=True, timeout=30)
        assert found.returncode == 0, found.stderr
        words = " ".join(found.stdout.replace("\b", "").split())
        assert "SYNOPSIS" in found.stdout.replace("_\b", "") or "S\bSY" in found.stdout
        assert len(words) > 200, path.name


def test_man_shows_a_page_of_a_file() -> None:
    found = subprocess.run([need("man"), "-l", str(HOUSE / "man/aj-run.1")], capture_output=True, text=True, timeout=30)
    assert found.returncode == 0, found.stderr
    assert "SYNOPSIS" in found.stdout and "--exit-status" in found.stdout.replace("\u2010", "-")
