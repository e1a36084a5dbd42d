"""aj queue list and show: tickets from their files, without a daemon."""

from __future__ import annotations

import pytest

from aj.base.paths import Project
from aj.model.ticket import Mode
from tests.cli import seed
from tests.cli.conftest import Shell


@pytest.fixture
def filled(aj: Shell, project: Project) -> Shell:
    seed.write_tickets(
        aj.home,
        project.key,
        seed.ticket("00000001"),
        seed.ticket("00000002", **seed.REFUSED),
        seed.ticket("00000003", mode=Mode.DIRECT),
        seed.ticket("00000004", mode=Mode.DIRECT, **seed.LOST),
        seed.ticket("00000005", **seed.WAITING),
        path=str(project.directory),
    )
    return aj


@pytest.mark.rule("C-029", "C-060")
def test_the_oldest_stands_first_and_settled_direct_ones_are_left_out(filled: Shell) -> None:
    seen = filled("queue", "list")
    assert seen.out.splitlines()[0] == "ticket\tmode\tstate\toutcome\tcreated\tname\tdetail"
    assert [(row[0], row[2], row[3], row[6]) for row in seen.rows] == [
        ("q-00000001", "completed", "submitted", ""),
        ("q-00000002", "failed", "failed", "larger than this machine"),
        ("q-00000004", "failed", "unknown", "the answer was lost"),
        ("q-00000005", "queued", "", ""),
    ]


@pytest.mark.rule("C-029")
@pytest.mark.parametrize(
    ("words", "due"),
    [
        (("-s", "failed"), ["q-00000002", "q-00000004"]),
        (("-s", "unknown"), ["q-00000004"]),
        (("-s", "queued", "-s", "completed"), ["q-00000001", "q-00000003", "q-00000005"]),
        (("-n", "1"), ["q-00000005"]),
    ],
)
def test_states_and_outcomes_choose(filled: Shell, words: tuple[str, ...], due: list[str]) -> None:
    assert filled("queue", "list", "-o", "name", *words).out.split() == due


@pytest.mark.rule("C-029", "C-246")
def test_every_project_also_one_whose_folder_is_gone(filled: Shell) -> None:
    seed.write_tickets(filled.home, "gone-abc", seed.ticket("0000000a"), path="/no/such/.azure_jobs")
    seen = filled("queue", "list", "--all", "--json").json
    projects = {item["ticket"]: item["project"] for item in seen["items"]}
    assert projects["q-0000000a"] == "/no/such/.azure_jobs (missing)"
    assert projects["q-00000001"] == str(filled.home.project().directory)
    assert "project" in filled("queue", "list", "--all").out.splitlines()[0].split("\t")


def test_a_limit_is_told(filled: Shell) -> None:
    seen = filled("queue", "list", "-n", "2")
    assert seen.err == "2 more: `aj queue list -n 0` shows all\n"
    assert filled("queue", "list", "-n", "2", "--json").json["truncated"] is True


def test_an_unknown_state(filled: Shell) -> None:
    seen = filled("queue", "list", "-s", "done")
    assert (seen.code, seen.out) == (2, "")
    assert "hint: one of queued" in seen.err


@pytest.mark.rule("C-030")
def test_one_ticket_with_its_story(filled: Shell) -> None:
    seen = filled("queue", "show", "q-00000002")
    fields = dict(line.split("\t", 1) for line in seen.out.splitlines())
    assert (fields["state"], fields["error"], fields["hint"]) == ("failed", "larger than this machine", "take less")
    assert filled("queue", "show", "00000002", "-o", "name").out == "q-00000002\n"
    item = filled("queue", "show", "q-00000001", "--json").json["item"]
    assert (item["submission"]["handle"], item["env_names"]) == ("local://jobs/00000001", ["A"])
    assert "request" not in item


@pytest.mark.rule("C-292", "C-294", "C-070")
@pytest.mark.parametrize("word", ["q-ffffffff", "../queue", "a/b", "q-00000001.json", "%2e%2e"])
def test_what_is_no_ticket_is_not_found(filled: Shell, word: str) -> None:
    seen = filled("queue", "show", word, "--json")
    assert seen.code == 3
    assert seen.err.startswith(f"aj: no such ticket: `{word}`")


@pytest.mark.rule("C-292", "C-005")
def test_an_empty_word_is_a_wrong_word(filled: Shell) -> None:
    assert filled("queue", "show", "").code == 2


@pytest.mark.rule("C-274")
def test_a_ticket_cut_in_half_is_told_and_hides_no_other(filled: Shell, project: Project) -> None:
    path = filled.home.layout.ticket(project.key, "q-00000001")
    path.write_bytes(path.read_bytes()[:40])
    seen = filled("queue", "list", "--json")
    assert len(seen.json["items"]) == 3
    assert [warning["code"] for warning in seen.json["warnings"]] == ["damaged-ticket"]
    assert str(path) in seen.err


@pytest.mark.rule("C-298")
def test_names_are_never_markup(aj: Shell, project: Project) -> None:
    seed.write_tickets(aj.home, project.key, seed.ticket("00000001", name="[red]x[/x]\x1b[31m"))
    assert aj("queue", "list").rows[0][5] == "[red]x[/x]\\x1b[31m"
    assert aj("queue", "list", "--json").json["items"][0]["name"] == "[red]x[/x]\x1b[31m"
