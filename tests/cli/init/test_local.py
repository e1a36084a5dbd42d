"""aj init local: a project in seconds, and never over what is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import Shell


@pytest.mark.rule("C-007b", "C-140")
def test_a_working_project(outside: Shell) -> None:
    seen = outside("init", "local", "--yes", "--json")
    assert (seen.code, seen.err) == (0, "")
    found = seen.json
    assert (found["action"], found["status"], len(found["items"])) == ("init", "ok", 3)
    assert found["next"][0] == "aj run -t local --wait train.py"
    assert outside("template", "validate", "--strict").out == "local: ok\n"
    assert outside("config", "get", "template").out == "local\n"
    files = outside("run", "-d", "--show", "files", "-t", "local", "--json", "train.py").json["items"]
    assert [file["path"] for file in files] == ["train.py"]


@pytest.mark.rule("C-007b")
@pytest.mark.usefixtures("programs")
def test_the_sample_runs_with_the_standard_library_alone(outside: Shell) -> None:
    outside("init", "local", "-y")
    done = subprocess.run(
        [sys.executable, "-IS", "train.py", "--steps", "2", "--seconds", "0"],
        cwd=outside.directory,
        env={"RANK": "1", "WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("rank 1 of 2, job no job")
    assert (outside.directory / "result-1.json").read_text().startswith('{"job": "no job", "rank": 1')


@pytest.mark.rule("C-007b")
def test_what_is_there_stays(outside: Shell) -> None:
    outside.write("train.py", "print('mine')\n")
    assert outside("init", "local").err == "train.py is there and stays as it is\n"
    again = outside("init", "local", "--json")
    assert (again.code, again.json["status"], again.json["items"]) == (0, "noop", [])
    assert (outside.directory / "train.py").read_text() == "print('mine')\n"


@pytest.mark.rule("C-007b")
def test_force_keeps_the_old_files(outside: Shell) -> None:
    outside.write("train.py", "print('mine')\n")
    outside.write("train.py.orig-1", "older\n")
    seen = outside("init", "local", "-f")
    assert "kept train.py.orig-2\n" in seen.err
    assert (outside.directory / "train.py.orig-2").read_text() == "print('mine')\n"
    assert "RANK" in (outside.directory / "train.py").read_text()


@pytest.mark.rule("C-333", "C-006", "C-072")
def test_a_project_inside_a_project_needs_a_yes(aj: Shell) -> None:
    inner = Shell(aj.home, aj.directory / "sub")
    inner.directory.mkdir()
    seen = inner("init", "local")
    assert seen.code == 5
    assert seen.err.endswith("hint: add `--yes`\n")
    assert not (inner.directory / ".azure_jobs").exists()
    done = inner("init", "local", "--yes")
    assert done.code == 0
    assert f"aj: warning: this is a project of its own inside another one, {aj.directory / '.azure_jobs'}" in done.err
