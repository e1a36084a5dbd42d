"""What a coding agent submits bears its name, and its lists show its own session."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from aj import Client
from aj.base import agents
from aj.base.clock import rfc3339
from aj.base.paths import Project
from aj.cli import app, complete
from aj.model.record import RecordState
from aj.view.screen import Streams
from tests.cli import seed
from tests.cli.conftest import Shell
from tests.conftest import Home

MINE, OLDER = "0199aa11-22bb-7cc3-8dd4-55ee66ff7788", "codex-49152"
CODEX = {"CODEX_THREAD_ID": MINE}
WIDER = "`--session all` for all\n"


def made(at: int, **changes: Any) -> Any:
    return seed.record(f"{at:08x}", ts=rfc3339(seed.BEGAN + at * 3600), service="amlt", **changes)


@pytest.fixture
def filled(aj: Shell, project: Project) -> Shell:
    """Submissions of a person, of a thread of Codex, of an older Codex and of Claude Code, and of another project."""
    seed.write_journal(
        aj.home,
        project.key,
        made(1),
        made(2, agent="codex", session=OLDER),
        made(3, agent="codex", session=MINE, session_title="Mend the loader"),
        made(4, agent="claude", session="c1", state=RecordState.FAILED),
    )
    other = aj.home.project("other")
    seed.write_journal(aj.home, other.key, made(5, agent="codex", session=MINE))
    return aj


def ids(shell: Shell, *words: str, **env: str) -> list[int]:
    return [int(word) for word in shell(*words, "--only-ids", **env).out.split()]


@pytest.mark.rule("AG-07", "AG-08", "AG-11", "C-018", "C-093")
@pytest.mark.parametrize(
    ("words", "due"),
    [
        ((), [3]),
        (("-t", "local"), [3]),
        (("-s", "failed"), []),
        (("--session", OLDER), [2]),
        (("--agent", "codex"), [3, 2]),
        (("--agent", "codex", "--session", MINE), [3]),
        (("--agent", "claude-code"), [4]),
        (("--agent", "all"), [4, 3, 2, 1]),
        (("--session", "all"), [4, 3, 2, 1]),
        (("--agent", "codex", "--session", "all"), [3, 2]),
        (("--all-projects",), [5, 4, 3, 2, 1]),
        (("--all-projects", "--session", MINE), [5, 3]),
    ],
)
def test_an_agent_sees_its_own_session_unless_it_asks(filled: Shell, words: tuple[str, ...], due: list[int]) -> None:
    assert ids(filled, "list", *words, **CODEX) == due
    assert ids(filled, "list", *words, AJ_SESSION=MINE) == due


@pytest.mark.rule("AG-07", "AG-02")
def test_a_person_sees_everything(filled: Shell) -> None:
    assert ids(filled, "list") == [4, 3, 2, 1]
    assert ids(Shell(filled.home, filled.directory, terminal=True), "list", **CODEX) == [4, 3, 2, 1]
    assert ids(filled, "list", AJ_AGENT="none", **CODEX) == [4, 3, 2, 1]


@pytest.mark.rule("AG-07", "AG-08")
def test_the_scope_is_told_with_the_way_out_of_it(filled: Shell) -> None:
    seen = filled("list", **CODEX)
    assert seen.err == f"only of this session, {MINE}: {WIDER}"
    found = filled("list", "--json", **CODEX)
    assert found.err == seen.err
    assert found.json["scope"] == {
        "project": filled.home.project().key,
        "workspace": None,
        "agent": None,
        "session": MINE,
        "own": True,
        "widen": "--session all",
    }
    wide = filled("list", "--session", "all", "--json", **CODEX)
    assert (wide.err, wide.json["scope"]["session"], wide.json["scope"]["widen"]) == ("", None, None)
    of_codex = filled("list", "--agent", "codex", "--json").json["scope"]
    assert (of_codex["agent"], of_codex["own"], of_codex["widen"]) == ("codex", False, "--agent all")
    assert filled("list", "-q", **CODEX).err == ""


@pytest.mark.rule("AG-07", "AG-08")
def test_an_empty_list_says_that_others_are_outside(filled: Shell) -> None:
    empty = filled("list", CODEX_THREAD_ID="new")
    others = "there are others outside it"
    assert empty.err == f"no such submissions\nonly of this session, new; {others}: {WIDER}" + (
        "1 other project has some: `--all-projects`\n"
    )
    assert f"{others}: `--session all`" in filled("list", "--session", "nobody").err
    assert f"{others}: `--agent all`" in filled("list", "--agent", "nobody").err
    # none of those outside is queued
    assert others not in filled("list", "-s", "queued", **CODEX).err
    assert others in filled("list", "-s", "failed", **CODEX).err


@pytest.mark.rule("AG-12", "AG-15")
def test_a_person_reads_titles_and_a_program_ids(filled: Shell) -> None:
    seen = filled("list")
    assert seen.out.splitlines()[0] == "id\tstate\ttemplate\tshape\tcreated\tsession\tcommand"
    assert [row[5] for row in seen.rows] == ["c1", "Mend the loader", OLDER, ""]
    items = filled("list", "--json").json["items"]
    assert [(item["session"], item["session_title"]) for item in items[:3]] == [
        ("c1", None),
        (MINE, "Mend the loader"),
        (OLDER, None),
    ]
    assert "session_text" not in items[0]
    assert "session" not in filled("list", **CODEX).out.splitlines()[0]
    assert filled("list", "-t", "other").out == ""


@pytest.mark.rule("AG-12", "AG-15")
def test_a_ticket_shows_who_made_it(aj: Shell, project: Project) -> None:
    titled = {"agent": "codex", "session": MINE, "session_title": "Mend the loader"}
    seed.write_tickets(aj.home, project.key, seed.ticket("00000001", **titled), seed.ticket("00000002", session="s"))
    shown = aj("queue", "show", "q-00000001").out
    assert f"agent\tcodex\nsession\tMend the loader ({MINE})\n" in shown
    assert "session\ts\n" in aj("queue", "show", "q-00000002").out
    item = aj("queue", "show", "q-00000001", "--json").json["item"]
    assert (item["agent"], item["session"], item["session_title"]) == tuple(titled.values())


@pytest.mark.rule("AG-03", "C-051")
def test_agents_and_sessions_are_completed(filled: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(filled.directory)

    def offered(*words: str) -> list[str]:
        return complete.answer(words, filled.home.settings).splitlines()[1:]

    assert offered("list", "--session", "") == ["c1\tclaude", f"{MINE}\tMend the loader", f"{OLDER}\tcodex", "all\t"]
    assert offered("job", "list", "--agent", "c") == ["claude\t", "codex\t", "cursor\t"]
    filled.home.layout.journal(filled.home.project().key).unlink()
    assert offered("list", "--agent", "a") == ["aider\t", "all\t"]
    assert offered("list", "--session", "") == ["all\t"]


def test_one_terminal_is_not_enough_for_a_person(filled: Shell) -> None:
    """`aj list | less` of an agent, and `echo | aj list`."""
    for terminals in ({"in_is_terminal": True}, {"out_is_terminal": True}):
        out = io.BytesIO()
        streams = Streams(out, io.BytesIO(), **terminals)
        words = ["-C", str(filled.directory), "list", "--only-ids"]
        assert app.run(words, filled.home.having(**CODEX).settings, streams) == 0
        assert out.getvalue().decode() == "00000003\n"


@pytest.mark.rule("AG-12", "AG-15")
def test_a_dry_run_reads_no_title(live: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object) -> None:
        raise AssertionError("a title was read")

    live.write("data.txt", "1")
    monkeypatch.setattr(agents, "title", no)
    assert live("run", "-d", "true", **CODEX).code == 0
    assert live("list", **CODEX).code == 0


def _title(home: Home, session: str, title: str) -> None:
    path = home.root / ".codex" / "session_index.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as index:
        index.write(json.dumps({"id": session, "thread_name": title}) + "\n")


@pytest.mark.rule("AG-02", "AG-03", "AG-04", "AG-05", "AG-07", "AG-12", "AG-13", "AG-14", "AG-15", "C-020")
def test_what_an_agent_submits_is_its_own(live: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    live.write("data.txt", "1")
    _title(live.home, MINE, "Mend the loader")
    ran = live("run", "--wait", "--only-ids", "true", **CODEX).out.strip()
    _title(live.home, MINE, "Another name")
    sent = live("job", "local/host", "--wait", "--only-ids", "--", "true", **CODEX).out.strip()
    old = live("run", "--wait", "--only-ids", "true", AJ_AGENT="codex", AJ_SESSION=OLDER).out.strip()
    nobodys = live("run", "--wait", "--only-ids", "true").out.strip()
    monkeypatch.setattr(agents, "terminals", lambda: 0)
    settings = live.home.having(CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="c1").settings
    with Client(settings, live.home.project()) as client:
        called = client.submit("local/host", command=["true"]).id

    assert live("job", "list", "--session", MINE, "--only-ids").out.split() == [sent, ran]
    found = live("job", "list", "--agent", "codex", "--json").json
    assert [(item["id"], item["session"], item["sessionLabel"]) for item in found["items"]] == [
        (old, OLDER, None),
        (sent, MINE, "Another name"),
        (ran, MINE, "Mend the loader"),
    ]
    own = live("job", "list", "-o", "name", **CODEX)
    assert (own.out.split(), own.err) == ([sent, ran], f"only of this session, {MINE}: {WIDER}")
    assert live("job", "list", "--session", "all", "-o", "name", **CODEX).out.split()[1:] == [nobodys, old, sent, ran]
    assert live("job", "list", "--json", CODEX_THREAD_ID="new").json["scope"]["session"] == "new"
    assert "; there are others outside it: " in live("job", "list", CODEX_THREAD_ID="new").err
    assert [row[-2] for row in live("job", "list", "--agent", "codex").rows] == [
        OLDER,
        "Another name",
        "Mend the loader",
    ]

    status = live("status", ran, "--json").json["item"]["workload"]
    assert (status["agent"], status["session"], status["sessionLabel"]) == ("codex", MINE, "Mend the loader")
    assert f"agent\tcodex\nsession\tMend the loader ({MINE})\n" in live("job", "show", ran).out
    assert f"session\t{OLDER}\n" in live("status", old).out
    mine = live("status", called, "--json").json["item"]["workload"]
    assert (mine["agent"], mine["session"], mine["sessionLabel"]) == ("claude", "c1", None)
    record = live("list", "-n", "0", "--json").json["items"][-1]
    assert (record["id"], record["agent"], record["session_title"]) == (ran, "codex", "Mend the loader")


@pytest.mark.rule("AG-02", "AG-10", "AG-07")
def test_the_program_itself_knows_its_caller(filled: Shell, programs: None) -> None:
    """As an agent starts it: a process of its own, with pipes for its streams."""
    home, here = filled.home, filled.directory
    assert home.aj("list", "--only-ids", cwd=here, stdin=b"", **CODEX).out == b"00000003\n"
    older = home.aj("list", cwd=here, stdin=b"", CODEX_BIN_PATH="/opt/codex")
    assert older.err.startswith(b"no such submissions\nonly of this session, codex-")


@pytest.mark.rule("AG-15")
def test_a_broken_index_stops_no_submission(live: Shell) -> None:
    path = live.home.root / ".codex" / "session_index.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"\x00\xff" * 1000 + MINE.encode())
    job = live("job", "local/host", "--only-ids", "--", "true", **CODEX).out.strip()
    assert f"session\t{MINE}\n" in live("status", job).out
