"""aj init: a project out of answers, given or asked for, and never invented."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, Shell

ALL = ("--repo", "acme/templates", "--workspace", "ml", "--experiment", "exp")


def answering(shell: Shell, said: str, monkeypatch: pytest.MonkeyPatch, *words: str) -> Ran:
    """Run `aj init` as a person who types these lines, and then nothing more."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    return Shell(shell.home, shell.directory, terminal=True)("init", *words)


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.rule("C-007")
def test_all_answers_by_options(outside: Shell) -> None:
    seen = outside("init", "--json", *ALL)
    assert (seen.code, seen.err) == (0, "")
    found = seen.json
    assert (found["action"], found["status"], found["path"]) == ("init", "ok", str(outside.directory / ".azure_jobs"))
    settings = {"template_repo": "git@github.com:acme/templates.git", "workspace.name": "ml", "experiment": "exp"}
    assert found["settings"] == settings
    folders = ["account", "environment", "scripts", "storage", "template"]
    assert tree(outside.directory / ".azure_jobs") == sorted(["aj.toml", *folders])
    text = (outside.directory / ".azure_jobs" / "aj.toml").read_text()
    assert text.startswith("# Settings of this project") and 'experiment = "exp"' in text
    assert found["next"][0] == "aj template pull"
    again = outside("init", "--json")
    assert (again.code, again.json["status"], again.json["settings"]) == (0, "noop", settings)
    assert (outside.directory / ".azure_jobs" / "aj.toml").read_text() == text


@pytest.mark.rule("C-007")
def test_nobody_to_ask(outside: Shell) -> None:
    for words, names in (((), "--repo, --workspace, --experiment"), (ALL[:4], "--experiment")):
        seen = outside("init", *words)
        assert seen.code == 2
        assert seen.err.startswith(f"aj: no terminal to ask on, and no answer for {names}\n")
        assert tree(outside.directory) == []
    seen = outside("init", "--repo", "", "--workspace", "", "--experiment", "", "--json")
    assert (seen.code, seen.json["settings"], seen.json["next"][0]) == (0, {}, "aj template init")
    assert (outside.directory / ".azure_jobs" / "aj.toml").exists()


@pytest.mark.rule("C-007", "C-065")
def test_a_person_is_asked_only_for_what_is_open(outside: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = answering(outside, "\nml-team\n\n", monkeypatch)
    assert seen.code == 0, seen.err
    assert [line.partition(" [")[0].partition(" (")[0] for line in seen.err.split("]: ")[:-1]] == [
        "repository of shared templates",
        "Azure ML workspace",
        "experiment",
    ]
    text = (outside.directory / ".azure_jobs" / "aj.toml").read_text()
    assert 'name = "ml-team"' in text and 'experiment = "elsewhere"' in text and "template_repo" not in text
    seen = answering(outside, "acme/x\n", monkeypatch)  # the one question that is still open
    assert seen.code == 0, seen.err
    assert "workspace" not in seen.err
    seen = answering(outside, "\nother\n\n", monkeypatch, "--force")
    assert seen.code == 0, seen.err
    assert "git@github.com:acme/x.git]" in seen.err and "[ml-team]" in seen.err
    assert outside("config", "get", "workspace.name").out == "other\n"
    assert outside("config", "get", "experiment").out == "elsewhere\n"


@pytest.mark.rule("C-007", "C-065")
def test_the_end_of_input_is_no_answer(outside: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("", "\n", "\nml\n"):
        seen = answering(outside, said, monkeypatch)
        assert (seen.code, "no answer" in seen.err) == (2, True)
        assert tree(outside.directory) == []


@pytest.mark.rule("C-007", "C-088")
def test_a_wrong_answer_leaves_nothing_behind(outside: Shell) -> None:
    for words, says in (
        (("--repo", "--upload-pack=x"), "`--upload-pack=x` is no repository"),
        (("--repo", "ext::sh -c id"), "a repository cannot be reached by `ext`"),
        (("--workspace", "a/b"), "`a/b` is no workspace"),
        (("--experiment", "-x"), "`experiment` takes a name"),
    ):
        seen = outside("init", *ALL, *words)
        assert (seen.code, says in seen.err) == (2, True), seen.err
        assert tree(outside.directory) == []
    dry = outside("init", *ALL, "-d")
    assert (dry.code, "would write .azure_jobs/aj.toml" in dry.out) == (0, True)
    assert tree(outside.directory) == []


@pytest.mark.rule("C-007", "C-084", "C-329")
def test_what_an_older_file_says_is_taken_over(outside: Shell) -> None:
    old = {"repo_id": "acme/old", "experiment": "before", "workspace": {"workspace_name": "w", "resource_group": "g"}}
    file = outside.write(".azure_jobs/aj_config.json", json.dumps(old))
    outside.write(".azure_jobs/template/mine.yaml", "base:\n")
    seen = outside("init", "--json")
    assert seen.code == 0, seen.err
    assert seen.json["settings"] == {
        "template_repo": "acme/old",
        "workspace.resource_group": "g",
        "workspace.name": "w",
        "experiment": "before",
    }
    assert "the settings of aj_config.json now stand in aj.toml" in seen.err
    assert outside("config", "get", "workspace.resource_group").out == "g\n"
    assert (json.loads(file.read_text()), file.with_name("template").joinpath("mine.yaml").read_text()) == (
        old,
        "base:\n",
    )
    (outside.directory / ".azure_jobs" / "aj.toml").unlink()
    file.write_text('{"experiment":\n ]')
    seen = outside("init", *ALL)
    assert (seen.code, ".azure_jobs/aj_config.json:2:2: not JSON" in seen.err) == (2, True), seen.err
    assert not (outside.directory / ".azure_jobs" / "aj.toml").exists()


@pytest.mark.rule("C-007", "C-081", "C-333")
def test_inside_another_project_it_asks_first(aj: Shell) -> None:
    inner = Shell(aj.home, aj.directory / "sub")
    inner.directory.mkdir()
    assert inner("init", *ALL).code == 5
    assert tree(inner.directory) == []
    assert inner("init", *ALL, "--yes").code == 0
    assert (inner.directory / ".azure_jobs" / "aj.toml").exists()
    there = Shell(aj.home.having(AJ_HOME=str(aj.directory / "own")), inner.directory)
    assert there("init", *ALL).code == 0
    assert (aj.directory / "own" / "aj.toml").exists()


@pytest.mark.rule("C-136", "C-007")
def test_credentials_of_an_address_are_not_saved(outside: Shell) -> None:
    seen = outside("init", *ALL, "--repo", "https://me:pa55word@git.example:8443/team/x.git?token=t0ken#f", "--json")
    assert seen.json["settings"]["template_repo"] == "https://git.example:8443/team/x.git"
    said = seen.out + seen.err + (outside.directory / ".azure_jobs" / "aj.toml").read_text()
    assert "pa55word" not in said and "t0ken" not in said and "me:" not in said
    assert "left out of the saved address" in seen.err


@pytest.mark.rule("C-002", "C-007")
def test_the_name_is_a_command_and_a_group(outside: Shell) -> None:
    page = outside("init", "--help").out
    assert "--workspace" in page and "amlt" in page and "local" in page
    assert outside("init", "--json", "local", "-y").json["action"] == "init"
    assert outside("init", "lokal").code == 2


@pytest.mark.rule("C-136")
def test_a_setting_of_a_repository_holds_no_credentials_either(aj: Shell) -> None:
    assert aj("config", "set", "template_repo", "https://me:pa55word@git.example/x").code == 0
    assert "pa55word" not in (aj.directory / ".azure_jobs" / "aj.toml").read_text()
    aj.write(".azure_jobs/aj.toml", 'template_repo = "https://me:pa55word@git.example/x"\n')
    for words in (("config", "show"), ("config", "get", "template_repo"), ("config", "show", "--json")):
        assert "pa55word" not in aj(*words).out
    (aj.directory / ".azure_jobs" / "aj.toml").unlink()
    aj.write(".azure_jobs/aj_config.json", '{"repo_id": "https://me:pa55word@git.example/x"}')
    seen = aj("init", "--workspace", "", "--experiment", "", "--json")
    assert (seen.code, "pa55word" in seen.out) == (0, False)
    assert 'template_repo = "https://git.example/x"' in (aj.directory / ".azure_jobs" / "aj.toml").read_text()
