"""Completion: what may come next, from files of this machine alone, and in the real shells."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aj.base.paths import Project
from aj.cli import complete, completion, tree
from tests.cli import seed
from tests.cli.conftest import Shell
from tests.conftest import Home


def candidates(home: Home, line: str) -> list[str]:
    """Return what is offered for a line; the last word is the one being typed."""
    words = shlex.split(line)
    answer = complete.answer(words[1:], home.settings).splitlines()
    assert answer[0] == complete.BEGIN
    return [row.partition("\t")[0] for row in answer[1:]]


@pytest.fixture
def here(aj: Shell, project: Project, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A project with templates, tickets and a job, and the working directory in it."""
    monkeypatch.chdir(aj.directory)
    aj.template("gpu", "base:\n")
    aj.template("gpu-spot", "base:\n")
    aj.template("ground", "config: {target: {service: local, base: no}}\n  # base: neither\n")
    aj.write(".azure_jobs/template/notes.txt", "")
    seed.write_tickets(aj.home, project.key, seed.ticket("00000001"), seed.ticket("00000002"))
    (aj.home.layout.jobs / "0000000a").mkdir(parents=True)
    for name, state in (("0000000b", "running"), ("0000000c", "errored")):
        (aj.home.layout.jobs / name).mkdir()
        (aj.home.layout.jobs / name / "record.json").write_text(f'{{"state": "{state}"}}')
    return aj.home


@pytest.mark.rule("C-051", "C-003")
@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("aj ''", tree.children(())),
        ("aj q", ["queue", "quota"]),
        ("aj queue ''", tree.children(("queue",))),
        ("aj queue --json l", ["list"]),
        ("aj run -t g", ["gpu", "gpu-spot"]),
        ("aj run --template ''", ["gpu", "gpu-spot"]),
        ("aj run --template=gpu-", [complete.PREFIX, "gpu-spot"]),
        ("aj run --template = gpu-", [complete.PREFIX, "gpu-spot"]),
        ("aj run -d -t ''", ["gpu", "gpu-spot"]),
        ("aj template show g", ["gpu", "gpu-spot", "ground"]),
        ("aj queue show ''", ["q-00000001", "q-00000002"]),
        ("aj queue wait q-00000001 ''", ["q-00000002"]),
        ("aj queue show q-00000001 ''", []),
        ("aj status 0000000a 0000000b ''", ["0000000c"]),
        ("aj job preempt ''", ["0000000b"]),
        ("aj terminate 0", ["0000000b"]),
        ("aj exec 0000000a l", [complete.FILES]),
        ("aj run -t gpu tr", [complete.FILES]),
        ("aj run -t gpu train.py -t g", [complete.FILES]),
        ("aj run --env-file ''", [complete.FILES]),
        ("aj run -n ''", []),
        ("aj run -d --show ''", ["argv", "files", "body", "manifest"]),
        ("aj run --no", ["--nodes", "--notify", "--no-color", "--no-input"]),
        ("aj queue list -s run", ["running"]),
        ("aj queue list -s queued -s ca", ["canceled"]),
        ("aj list --state err", ["errored"]),
        ("aj list --state=err", [complete.PREFIX, "errored"]),
        ("aj -o j", ["json", "jsonl"]),
        ("aj list -o ''", ["table", "json", "jsonl", "yaml", "name"]),
        ("aj config get time", ["timezone"]),
        ("aj help exit", ["exit-codes"]),
        ("aj docs ru", ["run"]),
        ("aj completion ''", ["bash", "zsh", "fish"]),
        ("aj list --service l", ["local"]),
        ("aj nonsense ''", []),
        ("aj run --nonsense ''", []),
        ("aj version --js", ["--json"]),
    ],
)
def test_candidates(here: Home, line: str, due: list[str]) -> None:
    found = candidates(here, line)
    assert (sorted(found) if line.endswith(("show ''", "status ''")) and "--show" not in line else found) == due


def test_the_newest_ticket_stands_first(here: Home, project: Project) -> None:
    import os

    os.utime(here.layout.ticket(project.key, "q-00000001"), (2e9, 2e9))
    assert candidates(here, "aj queue show ''")[0] == "q-00000001"


@pytest.mark.rule("C-051", "C-082")
def test_without_anything_there_is_nothing_and_nothing_is_made(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.root)
    for line in ("aj run -t ''", "aj queue show ''", "aj status ''"):
        assert candidates(home, line) == []
    assert not home.folders.state.exists()


def test_a_name_with_a_newline_is_not_offered(here: Home) -> None:
    (here.root / "project/.azure_jobs/template/a\nb.yaml").write_text("")
    assert candidates(here, "aj run -t ''") == ["gpu", "gpu-spot"]


@pytest.mark.rule("C-051")
@pytest.mark.parametrize("shell", list(completion.SHELLS))
def test_the_script_on_stdout_and_in_its_place(outside: Shell, shell: str) -> None:
    printed = outside("completion", shell)
    assert printed.raw == completion.script(shell).encode()
    assert printed.raw.endswith(b"\n")
    first = outside("completion", shell, "--install")
    assert first.err.startswith("wrote ")
    path = Path(first.err.splitlines()[0].removeprefix("wrote "))
    assert path.read_bytes() == printed.raw
    assert outside("completion", shell, "--install").err == f"{path} is up to date\n"
    assert outside.home.root in path.parents


@pytest.mark.rule("C-051", "T96")
def test_no_file_of_the_user_is_edited(outside: Shell) -> None:
    for name in (".bashrc", ".zshrc", ".profile"):
        (outside.home.root / name).write_text("mine")
    for shell in completion.SHELLS:
        outside("completion", shell, "--install")
    assert {(outside.home.root / name).read_text() for name in (".bashrc", ".zshrc", ".profile")} == {"mine"}


def test_an_unknown_shell(outside: Shell) -> None:
    missing = outside("completion").err
    assert missing == "aj: SHELL is missing\nhint: SHELL is bash, zsh or fish: `aj completion [OPTIONS] SHELL`\n"
    seen = outside("completion", "tcsh")
    assert (seen.code, seen.err) == (2, "aj: `SHELL`: `tcsh` is none of bash, zsh, fish\n")


@pytest.fixture
def on_path(here: Home, tmp_path: Path) -> dict[str, str]:
    """An environment in which `aj` is on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "aj"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -m aj "$@"\n')
    program.chmod(0o755)
    return {**here.env, "PATH": f"{folder}:/usr/bin:/bin"}


BASH = """
source {script}
COMP_WORDS=({words}) COMP_CWORD={at} COMP_LINE= COMP_POINT=0
_aj
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
LINES = [
    ("aj run -t ''", ["gpu", "gpu-spot"]),
    ("aj queue sh", ["show"]),
    ("aj queue list -s ca", ["canceled"]),
    ("aj run -t gpu trai", ["train.py"]),
]


def spoken(argv: list[str], env: dict[str, str], cwd: Path) -> list[str]:
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.rule("C-051", "T96", "T97")
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("line", "due"), [*LINES, ("aj run --template = gpu-", ["gpu-spot"])])
def test_bash(on_path: dict[str, str], aj: Shell, tmp_path: Path, line: str, due: list[str]) -> None:
    script = tmp_path / "aj.bash"
    script.write_text(completion.script("bash"))
    aj.write("train.py")
    words = shlex.split(line)
    code = BASH.format(script=script, words=" ".join(map(shlex.quote, words)), at=len(words) - 1)
    assert spoken(["bash", "--norc", "-c", code], on_path, aj.directory) == due


@pytest.mark.rule("C-051", "T96")
@pytest.mark.usefixtures("programs")
@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish (a Debian package), which is not installed")
@pytest.mark.parametrize(("line", "due"), [*LINES, ("aj run --template=gpu-", ["--template=gpu-spot"])])
def test_fish(on_path: dict[str, str], aj: Shell, tmp_path: Path, line: str, due: list[str]) -> None:
    script = tmp_path / "aj.fish"
    script.write_text(completion.script("fish"))
    aj.write("train.py")
    typed = line.removesuffix("''")
    code = f"source {script}; complete -C {shlex.quote(typed)}"
    found = spoken(["fish", "--no-config", "-c", code], on_path, aj.directory)
    assert [row.partition("\t")[0] for row in found] == due


ZSH = """
compdef() {{ :; }}
compadd() {{ local -a all=("$@"); local -i at=${{all[(I)--]}}; print -rl -- "${{(@)all[at+1,-1]}}"; }}
compset() {{ print -r -- "compset $*"; }}
_files() {{ print -r -- FILES; }}
source {script}
words=({words}); CURRENT={at}
_aj
"""


@pytest.mark.rule("C-051", "T96")
@pytest.mark.usefixtures("programs")
@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh (a Debian package), which is not installed")
@pytest.mark.parametrize(
    ("line", "due"),
    [*LINES[:3], ("aj run -t gpu trai", ["FILES"]), ("aj run --template=gpu-", ["compset -P *=", "gpu-spot"])],
)
def test_zsh(on_path: dict[str, str], aj: Shell, tmp_path: Path, line: str, due: list[str]) -> None:
    script = tmp_path / "_aj"
    script.write_text(completion.script("zsh"))
    words = shlex.split(line)
    code = ZSH.format(script=script, words=" ".join(map(shlex.quote, words)), at=len(words))
    assert spoken(["zsh", "-f", "-c", code], on_path, aj.directory) == due
