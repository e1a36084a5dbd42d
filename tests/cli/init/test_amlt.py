"""aj init amlt: amlt makes its own project, once, and nothing that is there is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.servers import amlt
from tests.servers.amlt import Amlt

TOML = '[workspace]\nname = "ml"\nsubscription_id = "sub 1"\nresource_group = "rg"\n'
ADD = "amlt workspace add ml --subscription 'sub 1' --resource-group rg"
NAMES = ("--project", "mine", "--storage", "store")


@pytest.fixture
def program(tmp_path: Path, programs: None) -> Amlt:
    return amlt.make(tmp_path / "amlt")


@pytest.fixture
def shell(aj: Shell, program: Amlt) -> Shell:
    aj.write(".azure_jobs/aj.toml", TOML)
    return Shell(aj.home.having(PATH=program.path), aj.directory)


def config(shell: Shell) -> Path:
    return shell.directory / ".amltconfig"


@pytest.mark.rule("C-008")
def test_amlt_makes_the_project(shell: Shell, program: Amlt) -> None:
    inner = Shell(shell.home, shell.directory / "deep")
    inner.directory.mkdir()
    dry = inner("init", "amlt", *NAMES, "-d", "--json")
    assert (dry.json["status"], dry.json["dry_run"], program.calls) == ("noop", True, [])
    seen = inner("init", "amlt", *NAMES, "--json")
    assert seen.code == 0, seen.err
    found = seen.json
    assert (found["project"], found["storage"], found["status"]) == ("mine", "store", "ok")
    assert found["next"][0] == ADD
    (call,) = program.calls
    assert (call["argv"], call["cwd"]) == (["project", "create", "mine", "store"], str(shell.directory))
    assert "submitted" in seen.err  # its words pass
    again = shell("init", "amlt")
    assert (again.code, len(program.calls)) == (0, 1)
    assert "kept .amltconfig: project mine" in again.out and ADD in again.out


@pytest.mark.rule("C-008")
def test_a_valid_file_is_kept_and_others_are_put_aside(shell: Shell, program: Amlt) -> None:
    good = '{"project_name": "p", "storage_account_name": "s", "more": 1}'
    config(shell).write_text(good)
    assert shell("init", "amlt", "--json").json["project"] == "p"
    refused = shell("init", "amlt", "--project", "q")
    assert (refused.code, "--project q: .amltconfig says p" in refused.err) == (2, True)
    assert (config(shell).read_text(), program.calls) == (good, [])
    bad = (
        '{"project_name": 5}',
        "[]",
        '{"project_name": "p",\n!',
        "",
        '{"project_name": "", "storage_account_name": "s"}',
    )
    for number, text in enumerate(bad, start=1):
        config(shell).write_text(text)
        seen = shell("init", "amlt", *NAMES)
        assert (seen.code, "aj: warning: .amltconfig" in seen.err) == (0, True), seen.err
        assert config(shell).with_name(f".amltconfig.orig-{number}").read_text() == text
        assert json.loads(config(shell).read_text())["project_name"] == "mine"
    assert shell("init", "amlt", "--force", "--project", "new", "--storage", "s2").code == 0
    assert json.loads(config(shell).read_text())["project_name"] == "new"


@pytest.mark.rule("C-008", "C-007", "A-193")
def test_what_is_missing_is_named(shell: Shell, program: Amlt) -> None:
    for words, says in (((), "--project"), (NAMES[:2], "--storage"), (("--project", "-x", *NAMES[2:]), "--project -x")):
        seen = shell("init", "amlt", *words)
        assert (seen.code, says in seen.err) == (2, True), seen.err
    shell.write(".azure_jobs/aj.toml", "")
    assert "no workspace is chosen" in shell("init", "amlt", *NAMES).err
    shell.write(".azure_jobs/aj.toml", TOML)
    away = Shell(shell.home.having(PATH="/nowhere"), shell.directory)("init", "amlt", *NAMES)
    assert (away.code, "no program `amlt` on PATH: /nowhere" in away.err) == (2, True)
    assert program.calls == [] and not config(shell).exists()


@pytest.mark.rule("C-008")
def test_when_amlt_fails_the_old_file_is_back(shell: Shell, program: Amlt) -> None:
    config(shell).write_text("[]")
    program.acts(prints=["no right to do so, token=abcdefgh"], code=3, makes_config=False)
    seen = shell("init", "amlt", *NAMES)
    assert (seen.code, "`amlt project create mine store` ended with exit status 3" in seen.err) == (1, True)
    assert "no right to do so" in seen.err and "abcdefgh" not in seen.err
    assert config(shell).read_text() == "[]"
    program.acts(makes_config=False)
    seen = shell("init", "amlt", *NAMES)
    assert (seen.code, "ended well, but there is no .amltconfig" in seen.err) == (1, True)
    assert config(shell).read_text() == "[]"
