"""aj deployment and aj job --deployment against a real daemon, with the program of the tests."""

from __future__ import annotations

import http.client
import sys
import urllib.request
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM
from aj.cli import complete
from aj.net import ports
from tests.cli.conftest import Shell

HOUSE = str(Path(__file__).resolve().parents[3])
LIMIT_S = 60.0


@pytest.mark.rule("C-019", "C-041", "AG-02", "TD-02", "TD-04", "TD-16", "TD-25", "TD-26")
def test_a_deployment_from_its_begin_to_its_end(live: Shell) -> None:
    assert "no deployments" in live("deployment", "list").err
    assert live("deployment", "status", "models").code == 3
    folder = live.directory / "app"
    folder.mkdir()
    program = ("--", sys.executable, "-m", "tests.workload.app", str(folder))
    made = live("deployment", "create", "models", "-e", f"PYTHONPATH={HOUSE}", "--json", *program)
    assert made.code == 0, made.err
    assert (made.json["item"]["replicas"], made.json["item"]["revision"]) == (1, 1)
    assert live("deployment", "create", "models", *program).code == 5
    assert live("deployment", "create", "Bad_Name", *program).code == 2
    assert live("deployment", "create", "empty").code == 2
    assert live("deployment", "create", "huge", "--replicas", "40", *program).code == 5

    agent = {"AJ_AGENT": "codex", "AJ_SESSION": "s1"}
    sent = live("job", "--deployment", "models", "--id", "work-1", "--timeout", "50s", "--wait", "--json", **agent)
    assert sent.code == 0, sent.err
    job = sent.json["item"]["workload"]
    assert (job["id"], job["state"], job["claimed"], job["deploymentId"]) == ("work-1", "completed", True, "models")
    assert (job["agent"], job["session"]) == ("codex", "s1")
    assert live("job", "--deployment", "models", "--id", "work-1").code == 5
    failed = live("job", "submit", "--deployment", "models", "--id", "fail-1", "--wait")
    assert failed.code == 1
    changes = [line for line in failed.err.splitlines() if line.endswith(("  queued", "  running", "  errored"))]
    assert changes and all(line[:4].isdecimal() and "T" in line.split()[0] for line in changes), failed.err
    assert live("job", "--deployment", "models", "--id", "gate-1", "-o", "name").out == "gate-1\n"
    _until(lambda: live("status", "gate-1", "--json").json["item"]["workload"]["claimed"])
    assert live("job", "--deployment", "models", "--id", "gate-2").code == 0
    assert live("status", "gate-2", "--json").json["item"]["jobsAhead"] == 0
    assert set(live("job", "list", "--deployment", "models", "-o", "name").out.split()) >= {"gate-1", "gate-2"}
    assert live("job", "list", "--deployment", "others", "-o", "name").out == ""
    shown = live("deployment", "status", "models")
    assert "busy" in shown.out and "job gate-1  running  replica 0" in shown.out
    assert live("deployment", "list").rows[0][:5] == ["models", "ready", "1 of 1", "1", "1"]
    assert live("deployment", "list", "-o", "name").out == "models\n"
    for command in (("exec", "gate-1", "true"), ("logs", "gate-1")):
        refused = live(*command)
        assert refused.code == 5 and "inside of deployment `models`" in refused.err

    for words in (("alpine", "--deployment", "models"), ("--deployment", "models", "--cpus", "2")):
        assert live("job", *words).code == 2
    assert live("job", "--id", "x", "local/host", "--", "true").code == 2
    assert live("job", "--deployment", "others").code == 3
    assert live("job").code == 2

    assert live("deployment", "upgrade", "models").code == 2
    assert live("deployment", "upgrade", "models", "--replicas", "2", "--json").json["item"]["replicas"] == 2
    assert "models\t" in complete.answer(["deployment", "status", ""], live.home.settings)
    without_yes = live("deployment", "delete", "models")
    assert without_yes.code == 5 and "add `--yes`" in without_yes.err
    refused = live("deployment", "delete", "models", "--yes")
    assert refused.code == 5 and "gate-1, gate-2" in refused.err
    assert live("terminate", "gate-2").code == 0
    gone = live("deployment", "delete", "models", "--yes", "--force", "--json")
    assert gone.code == 0 and gone.json["items"][0]["status"] == "ok"
    _until(lambda: "no deployments" in live("deployment", "list").err)
    assert live("wait", "gate-1", "--cleaned").code == 1


@pytest.mark.rule("WK-03")
def test_what_answers_others_all_the_time_is_a_deployment(live: Shell, loopback: None) -> None:
    port = ports.free_port()
    program = ("--", sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port))
    (live.directory / "word").write_text("here\n")
    assert live("deployment", "create", "site", *program).code == 0

    def word() -> bytes | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/word", timeout=10) as answer:
                return bytes(answer.read())
        except (OSError, http.client.HTTPException):  # it ends just now
            return None

    _until(lambda: word() == b"here\n")
    assert "replica 0  starting" in live("deployment", "status", "site").out, "ready is who asks for jobs"
    assert live("job", "list").out == "", "it is no job, and nobody waits for its end"
    refused = live("wait", "site")
    assert refused.code == 3
    assert live("deployment", "delete", "site", "--yes").code == 0
    _until(lambda: word() is None)


@pytest.mark.rule("WK-05")
def test_a_replica_that_crashes_tells_its_last_words_and_where_its_log_is(live: Shell) -> None:
    program = "import sys; print('begun'); sys.exit('no model at /nowhere')"
    assert live("deployment", "create", "bad", "--", sys.executable, "-c", program).code == 0
    _until(lambda: "last words" in live("deployment", "status", "bad").out)
    lines = live("deployment", "status", "bad").out.splitlines()
    assert "  last words: no model at /nowhere" in lines
    (log,) = [line.removeprefix("  its log: ") for line in lines if line.startswith("  its log: ")]
    assert "no model" in (Path(log) / "rank0.err").read_text()
    (member,) = live("deployment", "status", "bad", "--json").json["item"]["members"]
    assert member["last_words"] == "no model at /nowhere"
    live("deployment", "delete", "bad", "--yes", "--force")


def _until(is_so) -> None:  # type: ignore[no-untyped-def]
    limit = SYSTEM.monotonic() + LIMIT_S
    while not is_so():
        assert SYSTEM.monotonic() < limit
        SYSTEM.sleep(0.05)
