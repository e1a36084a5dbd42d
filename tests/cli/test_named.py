"""What a word names: whole ids, their begin, and jobs that are there no more."""

from __future__ import annotations

import pytest

from aj.base.paths import Project
from aj.model.ticket import Fault, Outcome, TicketState
from tests.cli import seed
from tests.cli.conftest import Shell
from tests.conftest import RunningDaemon


@pytest.mark.rule("C-005")
def test_the_begin_of_a_ticket(aj: Shell, project: Project) -> None:
    seed.write_tickets(aj.home, project.key, seed.ticket("abcd1111"), seed.ticket("abcd2222"), seed.ticket("abce3333"))
    for word in ("abce", "q-abce", "abce333", "abce3333"):
        assert aj("queue", "show", word, "-o", "name").out == "q-abce3333\n"
    both = aj("queue", "show", "q-abcd", "--json").json["error"]
    assert both["message"] == "`q-abcd` names 2 tickets: q-abcd1111, q-abcd2222"
    assert both["details"]["ids"] == ["q-abcd1111", "q-abcd2222"]
    assert aj("queue", "show", "abc").code == 3
    assert aj("logs", "abce", "--json").json["error"]["code"] == "deleted"
    assert aj("logs", "abcd", "--json").json["error"]["code"] == "ambiguous"


@pytest.mark.rule("C-005", "C-026", "C-018")
def test_a_job_is_named_by_a_begin_and_told_when_it_was_deleted(live: Shell) -> None:
    live.write("say.sh", "echo here\n")
    aj_id = live("run", "--wait", "-o", "name", "say.sh").out.strip()
    live("wait", aj_id, "--cleaned")
    for begin in (aj_id[:4], f"q-{aj_id[:6]}"):
        assert live("logs", begin).out == "here\n"
        assert live("status", begin, "--json").json["item"]["workload"]["id"] == aj_id
        assert live("queue", "wait", begin, "-o", "name").out == f"q-{aj_id}\n"
    assert live("status", aj_id[:3]).code == 3
    assert live("job", "delete", aj_id[:4], "--yes").code == 0
    for words in (("logs", aj_id), ("status", aj_id), ("wait", aj_id), ("job", "why", aj_id)):
        seen = live(*words)
        assert (seen.code, seen.err.splitlines()[:2]) == (
            3,
            [f"aj: job {aj_id} was deleted with its logs and files", "hint: its submission is in `aj list`"],
        )
    assert live("list").rows[0][:2] == [aj_id, "deleted"]
    assert live("list", "-s", "deleted", "-o", "name").out.split() == [aj_id]
    item = live("list", "--json").json["items"][0]
    assert (item["state"], item["job_state"]) == ("submitted", None)


@pytest.mark.rule("C-005", "C-023", "C-026")
def test_a_submission_that_never_became_a_job_says_why(aj: Shell, project: Project, daemon: RunningDaemon) -> None:
    fault = Fault("UserError", "too-large", "larger than this machine", "take less")
    refused = seed.ticket("abcd1111", state=TicketState.FAILED, outcome=Outcome.FAILED, error=fault)
    lost = seed.ticket("abce2222", state=TicketState.FAILED, outcome=Outcome.UNKNOWN)
    canceled = seed.ticket("abcf3333", state=TicketState.CANCELED, outcome=Outcome.CANCELED)
    seed.write_tickets(aj.home, project.key, refused, lost, canceled)
    commands = (("logs",), ("exec",), ("job", "why"), ("job", "preempt"), ("resubmit",))
    for words in commands:
        for aj_id, told, hint in (
            ("abcd1111", "abcd1111 was refused and never became a job: larger than this machine", "aj queue retry"),
            ("abce2222", "nobody knows whether abce2222 became a job", "aj queue reconcile q-abce2222"),
            ("abcf3333", "abcf3333 was canceled before it became a job", "aj queue show q-abcf3333"),
        ):
            seen = aj(*words, aj_id, *(("true",) if words == ("exec",) else ()))
            line, said = [one for one in seen.err.splitlines() if one != "starting the daemon"][:2]
            assert (seen.code, line) == (3 if words == ("logs",) else 5, f"aj: {told}")
            assert said.startswith("hint: ") and hint in said
    assert "`aj list` and `aj job list` show them" in aj("status", "nosuchjob").err
