"""Which coding agent calls, its session, and the title of that: told by fake environments and fake files."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.base import agents
from aj.base.agents import Caller
from aj.base.settings import FOREIGN, Settings
from tests.conftest import Home

THREAD = "0199aa11-22bb-7cc3-8dd4-55ee66ff7788"
OTHER = "0199aa11-22bb-7cc3-8dd4-000000000000"
BY_PARENT = str(os.getppid())


def seen(terminals: object = 0, **env: str) -> tuple[str | None, str] | None:
    """Who calls in an environment with so many of stdin and stdout at a terminal."""
    assert isinstance(terminals, int)
    found = agents.caller(Settings(env), terminals)
    return (found.agent, found.session) if found else None


@pytest.mark.rule("AG-02")
@pytest.mark.parametrize(
    ("env", "due"),
    [
        ({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": THREAD}, ("claude", THREAD)),
        ({"CLAUDECODE": "1"}, ("claude", f"claude-{BY_PARENT}")),
        ({"CODEX_SANDBOX": "seatbelt"}, ("codex", f"codex-{BY_PARENT}")),
        ({"CURSOR_AGENT": "1"}, ("cursor", f"cursor-{BY_PARENT}")),
        ({"OR_APP_NAME": "Aider"}, ("aider", f"aider-{BY_PARENT}")),
        ({"AIDER_VERSION": "0.86"}, ("aider", f"aider-{BY_PARENT}")),
        ({"OR_APP_NAME": "another program"}, None),
        ({"CLAUDECODE": ""}, None),
        ({}, None),
    ],
)
def test_four_agents_are_known_by_their_environment(env: dict[str, str], due: object) -> None:
    assert seen(**env) == due
    assert seen(1, **env) == due


@pytest.mark.rule("AG-02")
@pytest.mark.parametrize("name", ["CLAUDECODE", "CODEX_THREAD_ID", "CODEX_BIN_PATH", "CURSOR_AGENT", "AIDER_VERSION"])
def test_at_a_terminal_sits_a_person(name: str) -> None:
    assert seen(2, **{name: "1"}) is None
    assert seen(1, **{name: "1"}) is not None


@pytest.mark.rule("AG-02")
def test_what_a_person_may_set_counts_only_without_any_terminal() -> None:
    assert seen(0, AIDER_MODEL="sonnet") == ("aider", f"aider-{BY_PARENT}")
    assert seen(1, AIDER_MODEL="sonnet") is None
    assert seen(0, AIDER_MODEL="sonnet", CODEX_THREAD_ID=THREAD) == ("codex", THREAD)


@pytest.mark.rule("AG-09", "AG-10", "AG-11")
def test_a_thread_is_the_session_and_an_older_codex_has_its_parent_process() -> None:
    assert seen(CODEX_THREAD_ID=THREAD, CODEX_BIN_PATH="/opt/codex") == ("codex", THREAD)
    assert seen(CODEX_BIN_PATH="/opt/codex") == ("codex", f"codex-{BY_PARENT}")


@pytest.mark.rule("C-093")
def test_what_is_said_holds_over_what_is_found_and_at_a_terminal_too() -> None:
    found = {"CODEX_THREAD_ID": THREAD}
    assert seen(AJ_AGENT="mine", **found) == ("mine", f"mine-{BY_PARENT}")
    assert seen(AJ_SESSION="s1", **found) == ("codex", "s1")
    assert seen(2, AJ_AGENT="Codex", **found) == ("codex", THREAD)
    assert seen(AJ_AGENT="claude-code", CLAUDE_CODE_SESSION_ID=OTHER, **found) == ("claude", OTHER)
    assert seen(2, AJ_SESSION="s1") == (None, "s1")
    assert seen(AJ_AGENT="none", AJ_SESSION="s1", **found) is None


@pytest.mark.rule("C-093")
def test_a_wild_name_becomes_one_short_line() -> None:
    assert seen(AJ_AGENT="a\nb\x1b[31m", AJ_SESSION="x" * 5000 + "\n") == ("a b[31m", "x" * 200)
    assert seen(AJ_SESSION="\x01\x02\udc80", CODEX_THREAD_ID=THREAD) == ("codex", THREAD)


@given(st.dictionaries(st.sampled_from(["AJ_AGENT", "AJ_SESSION", "CODEX_THREAD_ID", "CLAUDECODE"]), st.text()))
def test_whatever_stands_in_the_environment_a_caller_can_be_kept(env: dict[str, str]) -> None:
    who = agents.caller(Settings(env), 0)
    for word in (who.agent, who.session) if who else ():
        assert word is None or (word and word.isprintable() and len(word) <= 200 and word.encode())


def codex(home: Home, *lines: object) -> Path:
    """Write the index of Codex's threads."""
    path = home.root / ".codex" / "session_index.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def named(home: Home, session: str = THREAD, **env: str) -> str | None:
    return agents.title(Caller("codex", session), home.having(**env).settings, home.root)


def line(name: object, session: str = THREAD) -> dict[str, object]:
    return {"id": session, "thread_name": name, "updated_at": "2026-01-01T00:00:00Z"}


@pytest.mark.rule("AG-13", "AG-14")
def test_codex_keeps_titles_in_an_index_whose_last_line_holds(home: Home) -> None:
    codex(home, line("First name"), line("Another", OTHER), line("Mend the  loader\n"))
    assert named(home) == "Mend the loader"
    assert named(home, OTHER) == "Another"
    assert named(home, "0199aa11") is None


@pytest.mark.rule("AG-13")
def test_codex_may_live_elsewhere(home: Home, tmp_path: Path) -> None:
    codex(home, line("At home"))
    there = tmp_path / "there"
    there.mkdir()
    assert named(home, CODEX_HOME=str(there)) is None
    (there / "session_index.jsonl").write_text(json.dumps(line("Elsewhere")))
    assert named(home, CODEX_HOME=str(there)) == "Elsewhere"


@pytest.mark.rule("AG-15")
def test_without_a_file_there_is_no_title(home: Home) -> None:
    assert named(home) is None
    codex(home, line("Renamed away")).rename(home.root / ".codex" / "session_index.jsonl.old")
    assert named(home) is None
    (home.root / ".codex" / "session_index.jsonl").mkdir()
    assert named(home) is None
    assert agents.title(Caller("codex", THREAD), Settings({}), home.root) is None
    assert agents.title(None, home.settings, home.root) is None
    assert agents.title(Caller("cursor", THREAD), home.settings, home.root) is None


@pytest.mark.rule("AG-15")
def test_a_file_that_may_not_be_read_is_no_trouble(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    codex(home, line("Hidden"))

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)  # root may read everything
        assert named(home) is None
    assert named(home) == "Hidden"


@pytest.mark.rule("AG-15")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\xfe" * 1000 + THREAD.encode(),
        b"\xff\xfe" + json.dumps(line("x")).encode("utf-16"),
        b'{"id": "%s", "thread_name": ' % THREAD.encode(),
        b"[" * 100_000 + b'"%s"' % THREAD.encode() + b"]" * 100_000,
        json.dumps([THREAD]).encode(),
        json.dumps(line(None)).encode(),
        json.dumps(line({"a": 1})).encode(),
        json.dumps(line(" \n\t")).encode(),
        json.dumps(line("\x00\x1b\ud800")).encode(),
    ],
)
def test_a_damaged_index_is_no_trouble(home: Home, content: bytes) -> None:
    codex(home).write_bytes(content)
    assert named(home) is None


@pytest.mark.rule("AG-15")
def test_one_damaged_line_hides_no_other(home: Home) -> None:
    path = codex(home, line("Good"))
    path.write_bytes(path.read_bytes() + b'\xff"%s" half a line' % THREAD.encode())
    assert named(home) == "Good"


@pytest.mark.rule("AG-13", "AG-15")
def test_of_a_huge_index_only_the_end_is_read(home: Home) -> None:
    path = codex(home, line("Long ago", OTHER))
    with path.open("r+b") as file:
        file.truncate(100 << 20)  # a hole: it takes no room on the disk
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + json.dumps(line("Late")).encode() + b"\n")
    began = time.monotonic()
    assert named(home) == "Late"
    assert named(home, OTHER) is None
    assert time.monotonic() - began < 2


@pytest.mark.rule("AG-15")
def test_a_pipe_in_place_of_the_index_makes_nobody_wait(home: Home) -> None:
    path = codex(home)
    path.unlink()
    os.mkfifo(path)
    assert named(home) is None


@pytest.mark.rule("AG-15")
@pytest.mark.parametrize("session", ["../../secret", "a/b", "", ".", "x\ny"])
def test_a_session_is_never_a_path(home: Home, session: str) -> None:
    (home.root / "secret.jsonl").write_text(json.dumps({"type": "summary", "summary": "told"}))
    (home.root / ".claude" / "projects" / "p").mkdir(parents=True)
    assert agents.title(Caller("claude", session), home.settings, home.root) is None


@pytest.mark.rule("AG-12")
def test_a_title_is_one_short_line_without_secrets(home: Home) -> None:
    codex(home, line("Use\n token=abcdef123456 now \u202e" + "x" * 500))
    title = named(home)
    assert title is not None
    assert title.startswith("Use token=*** now x")
    assert len(title) == 120


def claude(home: Home, folder: str, *lines: object, session: str = THREAD, root: str = ".claude") -> Path:
    """Write a conversation of Claude Code."""
    path = home.root / root / "projects" / folder / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def told(home: Home, directory: Path | None = None, session: str = THREAD, **env: str) -> str | None:
    return agents.title(Caller("claude", session), home.having(**env).settings, directory or home.root)


SAID = {"type": "user", "message": {"content": 'write "custom-title" and "ai-title" into a file'}}


@pytest.mark.rule("AG-12", "AG-14")
def test_claude_code_keeps_titles_in_its_transcript(home: Home) -> None:
    folder = str(home.root).replace("/", "-")
    lines: list[object] = [SAID, {"type": "summary", "summary": "A summary", "leafUuid": "u"}]
    claude(home, folder, *lines)
    assert told(home) == "A summary"
    lines += [{"type": "ai-title", "aiTitle": "Made up", "sessionId": THREAD}]
    claude(home, folder, *lines)
    assert told(home) == "Made up"
    lines.insert(0, {"type": "custom-title", "customTitle": "Mine", "sessionId": THREAD})
    lines.append({"type": "custom-title", "customTitle": "Of another", "sessionId": OTHER})
    claude(home, folder, *lines)
    assert told(home) == "Mine"
    lines.append({"type": "custom-title", "customTitle": "Mine, renamed", "sessionId": THREAD})
    claude(home, folder, *lines)
    assert told(home) == "Mine, renamed"
    assert told(home, session=OTHER) is None


@pytest.mark.rule("AG-12")
def test_a_conversation_is_found_from_below_its_folder_and_from_elsewhere(home: Home) -> None:
    claude(home, str(home.root).replace("/", "-"), {"type": "ai-title", "aiTitle": "Here"})
    claude(home, "-some-other-place", {"type": "ai-title", "aiTitle": "There"}, session=OTHER)
    assert told(home, home.root / "deep" / "below") == "Here"
    assert told(home, Path("/"), OTHER) == "There"
    claude(home, "p", {"type": "ai-title", "aiTitle": "Moved"}, root="config")
    assert told(home, CLAUDE_CONFIG_DIR=str(home.root / "config")) == "Moved"


@pytest.mark.rule("AG-15")
def test_of_a_huge_transcript_both_ends_are_read(home: Home) -> None:
    path = claude(home, "p", {"type": "ai-title", "aiTitle": "At the beginning"})
    with path.open("r+b") as file:
        file.truncate(100 << 20)
    assert told(home) == "At the beginning"
    path.write_bytes(b"\x00" * 3_000_000)
    assert told(home) is None


@pytest.mark.rule("C-093")
def test_every_variable_that_is_looked_at_stands_in_the_help() -> None:
    signs = {sign.partition("=")[0] for agent in agents.AGENTS.values() for sign in (*agent.signs, *agent.weak)}
    names = {agent.session for agent in agents.AGENTS.values() if agent.session}
    assert signs | names | {"CODEX_HOME", "CLAUDE_CONFIG_DIR"} <= FOREIGN.keys()
