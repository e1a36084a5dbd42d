"""Completion in real shells: the generated scripts are sourced and asked as a person's TAB key would."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.house.test_pages import need

HOUSE = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> dict[str, str]:
    """A project with two templates, `aj` on the PATH, and the environment to start a shell in."""
    folder = tmp_path / "a project" / ".azure_jobs" / "template"
    folder.mkdir(parents=True)
    for name in ("local", "gpu-spot"):
        (folder / f"{name}.yaml").write_text("base:\nconfig: {target: {service: local}}\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    aj = programs / "aj"
    aj.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -m aj "$@"\n')
    aj.chmod(0o755)
    return {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "AJ_STATE_DIR": str(tmp_path / "state"),
        "AJ_CACHE_DIR": str(tmp_path / "cache"),
        "AJ_RUNTIME_DIR": str(tmp_path / "run"),
        "AJ_CONFIG_DIR": str(tmp_path / "config"),
        "PROJECT": str(tmp_path / "a project"),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }


def ask_bash(line: str, env: dict[str, str]) -> set[str]:
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    listed = " ".join(shlex.quote(word) for word in words)
    script = (
        f"source {shlex.quote(str(HOUSE / 'completions/aj.bash'))}; COMP_WORDS=({listed}); "
        f'COMP_CWORD={len(words) - 1}; _aj; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    found = subprocess.run(
        [need("bash"), "--norc", "-c", script], env=env, cwd=env["PROJECT"], capture_output=True, text=True, timeout=30
    )
    assert (found.returncode, found.stderr) == (0, "")
    return set(found.stdout.split())


def ask_fish(line: str, env: dict[str, str]) -> set[str]:
    script = f"source {shlex.quote(str(HOUSE / 'completions/aj.fish'))}; complete -C {shlex.quote(line)}"
    Path(env["HOME"]).mkdir(exist_ok=True)
    found = subprocess.run(
        [need("fish"), "--no-config", "-c", script],
        env=env,
        cwd=env["PROJECT"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (found.returncode, found.stderr) == (0, "")
    return {row.split("\t")[0] for row in found.stdout.splitlines()}


def ask_zsh(line: str, env: dict[str, str], expect: str) -> str:
    """Type a line and a TAB into an interactive zsh and return what it shows once `expect` is there."""
    program = need("zsh")
    Path(env["HOME"]).mkdir(exist_ok=True)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(env["PROJECT"])
        os.execve(program, [program, "-f", "-i"], {**env, "TERM": "vt100", "PS1": "READY>"})
    try:
        folder = shlex.quote(str(HOUSE / "completions"))
        setup = f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=0; print SET''UP\n"
        os.write(terminal, setup.encode())
        read_until(terminal, "SETUP")
        os.write(terminal, f"{line}\t".encode())
        return read_until(terminal, expect)
    finally:
        os.close(terminal)
        os.kill(child, 9)
        os.waitpid(child, 0)


def read_until(terminal: int, expect: str, limit_s: float = 20) -> str:
    seen, end = "", time.monotonic() + limit_s
    while expect not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65536).decode("utf-8", "replace")
    assert expect in seen, f"waited for {expect!r}, saw {seen!r}"
    return seen


@pytest.mark.rule("C-051")
@pytest.mark.parametrize("ask", [ask_bash, ask_fish])
def test_values_and_commands_complete(ask: object, project: dict[str, str]) -> None:
    assert callable(ask)
    assert {"local", "gpu-spot"} <= ask("aj run -t ", project)
    assert ask("aj run -t gp", project) == {"gpu-spot"}
    assert {"run", "queue", "status"} <= ask("aj ", project)
    assert ask("aj queue re", project) == {"resume", "retry", "reconcile"}
    assert "--processes-per-node" in ask("aj run --proc", project)


@pytest.mark.rule("C-051")
def test_values_complete_in_zsh(project: dict[str, str]) -> None:
    ask_zsh("aj run -t gp", project, "gpu-spot")
    ask_zsh("aj queue rec", project, "reconcile")


@pytest.mark.rule("C-051")
def test_completion_starts_and_writes_nothing(project: dict[str, str]) -> None:
    ask_bash("aj run -t ", project)
    ask_bash("aj status ", project)
    written = [
        name for name in ("state", "cache", "run", "config") if (Path(project["PROJECT"]).parent / name).exists()
    ]
    assert written == []


def test_scripts_parse() -> None:
    for shell, name in (("bash", "aj.bash"), ("zsh", "_aj"), ("fish", "aj.fish")):
        program = need(shell)
        found = subprocess.run([program, "-n", str(HOUSE / "completions" / name)], capture_output=True, timeout=30)
        assert (found.returncode, found.stderr) == (0, b""), shell
