"""aj list: the journal, filtered whole, limited last."""

from __future__ import annotations

import pytest

from aj.base.clock import rfc3339
from aj.base.paths import Project
from aj.cli import complete
from aj.cli import list as listing
from aj.model.record import RecordState
from aj.model.state import JobState
from tests.cli import seed
from tests.cli.conftest import Shell


@pytest.fixture
def filled(aj: Shell, project: Project) -> Shell:
    """A journal of ten submissions, the newest last; every third failed, the first by another template."""
    records = [
        seed.record(
            f"{at:08x}",
            ts=rfc3339(seed.BEGAN + at * 3600),
            state=RecordState.FAILED if at % 3 == 0 else RecordState.SUBMITTED,
            template="gpu" if at == 0 else "local",
            service="sing" if at == 0 else "local",
            session="s1" if at == 5 else None,
        )
        for at in range(10)
    ]
    seed.write_journal(aj.home, project.key, *records)
    return aj


@pytest.mark.rule("C-018", "C-060")
def test_the_newest_stands_first(filled: Shell) -> None:
    seen = filled("list", "-n", "2")
    assert seen.out.splitlines()[0] == "id\tstate\ttemplate\tshape\tcreated\tcommand"
    assert [row[:4] for row in seen.rows] == [
        ["00000009", "failed", "local", "2x4"],
        ["00000008", "deleted", "local", "2x4"],
    ]
    assert seen.err == "there are more: `-n 0` shows all\n"


@pytest.mark.rule("C-018", "C-282")
@pytest.mark.parametrize(
    ("words", "due"),
    [
        (("-s", "failed", "-n", "2"), ["00000009", "00000006"]),
        (("-s", "failed", "-t", "gpu"), ["00000000"]),
        (("--service", "sing"), ["00000000"]),
        (("--session", "s1"), ["00000005"]),
        (("-s", "failed", "-s", "submitted", "-n", "0"), [f"{at:08x}" for at in range(9, -1, -1)]),
        (("-s", "unknown"), []),
    ],
)
def test_filters_look_at_the_whole_journal(filled: Shell, words: tuple[str, ...], due: list[str]) -> None:
    assert filled("list", "-o", "name", *words).out.split() == due


@pytest.mark.rule("C-018", "C-029", "C-020")
def test_both_words_for_a_state_are_understood(filled: Shell) -> None:
    assert filled("list", "--state", "failed", "-o", "name").out == filled("list", "-s", "failed", "-o", "name").out
    assert filled("queue", "list", "--status=queued").code == 0
    for words in (("list",), ("job", "list"), ("queue", "list")):
        shown = filled(*words, "-h").out
        assert ("--state" in shown) != ("--status" in shown)  # one is documented


@pytest.mark.rule("C-018", "C-020")
def test_who_asks_for_failed_hears_of_errored(live: Shell) -> None:
    live.write("fail.sh", "exit 3\n")
    live("run", "--wait", "fail.sh")
    for words in (("list",), ("job", "list")):
        seen = live(*words, "-s", "failed")
        assert (seen.code, seen.err.splitlines()[-1]) == (0, "1 ended with an error of its program: `-s errored`")
        assert "`-s" not in live(*words, "-s", "failed", "-s", "errored").err
        assert "`-s" not in live(*words, "-s", "terminated").err


@pytest.mark.rule("C-018")
def test_since_is_measured_from_now(filled: Shell) -> None:
    import time

    hours = (time.time() - seed.BEGAN) / 3600
    assert filled("list", "--since", f"{int(hours) - 7}h", "-o", "name").out.split() == ["00000009", "00000008"]


@pytest.mark.rule("C-282", "C-069")
def test_an_unknown_state_is_told_with_those_that_exist(filled: Shell) -> None:
    seen = filled("list", "-s", "success")
    assert seen.code == 2
    assert seen.err.startswith("aj: `success` is no state\nhint: one of intended, submitted, failed, unknown, ")


@pytest.mark.rule("C-018", "C-055", "C-334")
def test_json_carries_the_whole_record(filled: Shell) -> None:
    found = filled("list", "-n", "1", "--json").json
    assert found["truncated"] is True
    assert (found["scope"]["project"], found["scope"]["session"]) == (filled.home.project().key, None)
    item = found["items"][0]
    assert (item["id"], item["shape"]["processes_per_node"], item["code"]["files"]) == ("00000009", 4, 3)
    assert item["job_state"] is None


@pytest.mark.rule("C-018")
def test_other_projects_are_asked_for(filled: Shell) -> None:
    other = filled.home.project("other")
    seed.write_journal(filled.home, other.key, seed.record("ffffffff", ts=rfc3339(seed.BEGAN + 8.5 * 3600)))
    assert "ffffffff" not in filled("list", "-o", "name").out
    assert filled("list", "--all-projects", "-o", "name", "-n", "3").out.split() == ["00000009", "ffffffff", "00000008"]


@pytest.mark.rule("C-279", "C-280")
def test_a_damaged_line_hides_no_other(filled: Shell, project: Project) -> None:
    path = filled.home.layout.journal(project.key)
    lines = path.read_bytes().split(b"\n")
    lines[3] = b"garbage"
    path.write_bytes(b"\n".join(lines) + b'{"half')
    seen = filled("list", "-n", "0", "--json")
    assert seen.code == 0
    assert len(seen.json["items"]) == 9
    assert [warning["code"] for warning in seen.json["warnings"]] == ["damaged-record"]
    assert f"{path}:4" in seen.err


@pytest.mark.rule("C-006", "C-082")
def test_reading_makes_nothing(aj: Shell) -> None:
    for words in (
        ("list",),
        ("queue", "list"),
        ("template", "list"),
        ("config", "show"),
        ("queue", "show", "q-00000000"),
    ):
        aj(*words)
    assert not aj.home.folders.state.exists()
    assert not aj.home.folders.config.exists()
    assert not aj.home.folders.runtime.exists()


@pytest.mark.rule("C-063", "T38")
def test_an_empty_list_is_no_failure(aj: Shell) -> None:
    assert (aj("list").code, aj("list").out, aj("list").err) == (0, "", "no submissions\n")
    assert aj("list", "--json").json["items"] == []
    assert aj("list", "-o", "jsonl").raw == b""
    assert aj("list", "-o", "name").raw == b""


@pytest.mark.rule("C-063")
def test_an_empty_scope_tells_where_there_is_more(aj: Shell) -> None:
    seed.write_journal(aj.home, "other-1", seed.record("00000001"))
    seed.write_tickets(aj.home, "other-1", seed.ticket("00000001"))
    assert aj("list").err == "no submissions\n1 other project has some: `--all-projects`\n"
    assert aj("queue", "list").err == "no tickets\n1 other project has some: `--all`\n"
    assert aj("list", "--all-projects", "-o", "name").out == "00000001\n"


@pytest.mark.rule("C-095", "C-085", "C-065")
def test_a_verbose_caller_hears_of_names_that_mean_nothing(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", 'tempalte = "x"\n')
    seen = aj("list", "-v", AJ_TEMPLTE="x", AJ_NODES="3")
    assert seen.err.splitlines()[:2] == [
        "aj: warning: AJ_TEMPLTE means nothing to this release",
        "aj: warning: .azure_jobs/aj.toml:1: unknown setting `tempalte`; did you mean `template`?",
    ]
    assert "means nothing" not in aj("list", AJ_TEMPLTE="x").err


@pytest.mark.rule("C-018", "C-063")
def test_filters_that_find_nothing_say_so(filled: Shell, project: Project) -> None:
    assert filled("list", "-s", "unknown").err == "no submissions in this state\n"
    assert filled("list", "-s", "unknown", "-s", "queued").err == "no submissions in these states\n"
    assert filled("list", "-t", "nope").err == "no such submissions\n"
    seed.write_journal(filled.home, "other-0000", seed.record("0000abcd"))
    assert filled("list", "-s", "unknown").err == "no submissions in this state\n"
    seed.write_journal(filled.home, "other-0000", seed.record("0001abcd", state=RecordState.UNKNOWN))
    assert filled("list", "-s", "unknown").err.endswith("1 other project has some: `--all-projects`\n")


@pytest.mark.rule("C-018", "C-051")
def test_completion_offers_every_state() -> None:
    assert set(complete.STATIC["record-state"]) == set(listing.KNOWN)
    assert set(complete.STATIC["job-state"]) == {state.value for state in JobState}
