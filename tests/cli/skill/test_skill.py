"""aj skill: what coding agents are taught is true, and nothing of anybody else's is touched."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from aj.cli import app, declare, words
from aj.cli.skill import places
from aj.store import skills
from tests.cli.conftest import Ran, Shell

LINE = re.compile(r"(?:^    |`)(aj [^`\n]*)", re.MULTILINE)


def states(seen: Ran) -> dict[str, str]:
    return {item["agent"]: item["state"] for item in seen.json["items"]}


def folder(shell: Shell, agent: str = "claude") -> Path:
    return shell.home.root / places.FOLDERS[agent][0] / "aj"


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.rule("C-049")
def test_every_line_of_the_skill_can_be_typed() -> None:
    text = places.packaged()["SKILL.md"].decode()
    assert text.startswith("---\nname: aj\ndescription: ")
    lines = LINE.findall(text)
    assert len(lines) > 25
    for line in lines:
        typed = shlex.split(line)[1:]
        found = words.find(typed)
        assert found.command is not None, line
        words.take(found.rest, declare.read(app.room(found.command).Options), found.line)


@pytest.mark.rule("C-049", "C-006")
def test_from_nothing_to_current_and_back(aj: Shell) -> None:
    assert set(states(aj("skill", "status", "--json")).values()) == {"not_installed"}
    assert aj("skill", "update", "--json").json["items"][0]["status"] == "noop"
    seen = aj("skill", "install", "--json")
    assert (seen.code, states(seen)) == (0, dict.fromkeys(places.FOLDERS, "current"))
    assert tree(folder(aj)).keys() == {"SKILL.md", skills.MANIFEST}
    assert {item["status"] for item in aj("skill", "install", "--json").json["items"]} == {"noop"}
    assert aj("skill", "status", "-o", "name").out.split() == list(places.FOLDERS)
    seen = aj("skill", "uninstall", "claude", "--json")
    assert (seen.code, states(seen)) == (0, {"claude": "not_installed"})
    assert not folder(aj).exists() and folder(aj, "codex").exists()


@pytest.mark.rule("C-049")
def test_in_a_project_or_any_folder(aj: Shell, outside: Shell, tmp_path: Path) -> None:
    assert aj("skill", "install", "copilot", "--project").code == 0
    assert (aj.directory / ".github/skills/aj/SKILL.md").exists()
    assert outside("skill", "install", "--project").code == 2
    assert outside("skill", "install", "--root", str(tmp_path / "no")).code == 2
    root = tmp_path / "root"
    root.mkdir()
    assert outside("skill", "install", "claude", "--root", str(root)).code == 0
    assert (root / ".claude/skills/aj/SKILL.md").exists()
    assert outside("skill", "install", "--project", "--user").code == 2
    assert outside("skill", "install", "emacs").code == 2


@pytest.mark.rule("C-049")
def test_an_older_copy_is_brought_up_to_date(aj: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    really = places.packaged
    monkeypatch.setattr(places, "packaged", lambda: {"SKILL.md": b"old\n", "more.md": b"gone\n"})
    aj("skill", "install", "claude")
    monkeypatch.setattr(places, "packaged", really)
    assert states(aj("skill", "status", "claude", "--json")) == {"claude": "outdated"}
    seen = aj("skill", "update", "claude", "--json")
    assert (seen.code, states(seen)) == (0, {"claude": "current"})
    assert tree(folder(aj)).keys() == {"SKILL.md", skills.MANIFEST}


@pytest.mark.rule("C-049")
@pytest.mark.parametrize("verb", ["install", "update"])
def test_what_somebody_else_wrote_stays(aj: Shell, verb: str) -> None:
    folder(aj).mkdir(parents=True)
    (folder(aj) / "SKILL.md").write_text("mine\n")
    before = tree(folder(aj))
    assert states(aj("skill", "status", "claude", "--json")) == {"claude": "unmanaged"}
    for words_ in (
        ("skill", verb, "claude"),
        ("skill", "uninstall", "claude"),
        ("skill", "uninstall", "claude", "--force"),
    ):
        assert aj(*words_).code == 5
        assert tree(folder(aj)) == before
    seen = aj("skill", verb, "claude", "--force", "--json")
    assert (seen.code, states(seen)) == (0, {"claude": "current"})
    (folder(aj) / "SKILL.md").write_text("changed\n")
    before = tree(folder(aj))
    seen = aj("skill", verb, "--json")
    assert seen.code == 5
    assert states(seen) == {
        "copilot": "current" if verb == "install" else "not_installed",
        "codex": "current" if verb == "install" else "not_installed",
        "claude": "modified",
    }
    assert seen.json["items"][2]["error"]["code"] == "modified-skill"
    assert aj("skill", "uninstall", "claude").code == 5
    assert tree(folder(aj)) == before
    assert aj("skill", verb, "claude", "--force").code == 0
    kept = sorted(path.read_text() for path in folder(aj).glob("SKILL.md.orig-*"))
    assert kept == ["changed\n", "mine\n"]
    assert aj("skill", "uninstall", "claude").code == 0
    assert sorted(path.name for path in folder(aj).iterdir()) == ["SKILL.md.orig-1", "SKILL.md.orig-2"]


@pytest.mark.rule("C-049")
def test_a_link_is_never_written_through(aj: Shell, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    folder(aj).parent.mkdir(parents=True)
    folder(aj).symlink_to(target)
    for verb in ("install", "update", "uninstall"):
        seen = aj("skill", verb, "claude", "--force", "--json")
        assert (seen.code, states(seen)) == (5, {"claude": "invalid"})
    assert list(target.iterdir()) == [] and folder(aj).is_symlink()
    folder(aj).unlink()
    folder(aj).mkdir()
    (folder(aj) / "SKILL.md").symlink_to(target / "x")
    assert aj("skill", "install", "claude", "--force").code == 5
    assert not (target / "x").exists()
    (folder(aj) / "SKILL.md").unlink()
    for broken in ("{", "[]", json.dumps({"files": {"../x": "0"}}), json.dumps({"files": 5})):
        (folder(aj) / skills.MANIFEST).write_text(broken)
        assert states(aj("skill", "status", "claude", "--json")) == {"claude": "invalid"}
        assert aj("skill", "install", "claude").code == 5
        assert aj("skill", "uninstall", "claude", "--force").code == 5
    assert aj("skill", "install", "claude", "--force").code == 0
