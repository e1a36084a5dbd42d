"""aj run on this machine, from the word to the end of the job: a real daemon, real processes."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.conftest import Shell
from tests.conftest import RunningDaemon

LOCAL = "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n"


@pytest.fixture
def live(aj: Shell, daemon: RunningDaemon) -> Shell:
    aj.template("local", LOCAL)
    aj.write(".azure_jobs/aj.toml", 'template = "local"\n')
    aj.write("README", "some code\n")
    return Shell(aj.home.having(PATH=f"{sys.prefix}/bin:/usr/bin:/bin"), aj.directory)


@pytest.mark.rule("C-009", "C-017", "C-235", "C-194", "C-055", "C-237", "C-030", "C-018")
def test_a_submission_and_its_ticket(live: Shell) -> None:
    seen = live("run", "--json", "true")
    assert seen.code == 0, seen.err
    item = seen.json["item"]
    assert (item["status"], item["backend"], item["command"]) == ("submitted", "local", ["true"])
    assert item["ticket"] == f"q-{item['id']}"
    assert item["code"]["files"] == 1
    assert item["code"]["reused"] is False
    assert "code: 1 file, 10 B, " in seen.err
    assert "next: `aj wait " in seen.err
    assert live("queue", "show", item["ticket"], "--json").json["item"]["outcome"] == "submitted"
    assert live("list", "-o", "name").out.split() == [item["id"]]
    assert live("wait", item["id"]).code == 0
    table = live("run", "true")
    shown = dict(line.split("\t") for line in table.out.splitlines())
    assert (shown["status"], shown["code"]) == ("submitted", f"reused {item['code']['digest'][:12]}, 1 file, 10 B")
    again = live("run", "--json", "true")
    assert again.json["item"]["code"]["reused"] is True
    assert f"code: reused {item['code']['digest'][:12]}, 1 file, 10 B" in again.err


@pytest.mark.rule("C-022", "C-023", "C-021", "C-020", "C-014", "OP-01", "OP-02", "AG-05", "LC-21")
def test_staying_to_the_end(live: Shell) -> None:
    live.write("job.sh", "echo out; echo err >&2; touch made\n")
    seen = live("run", "--wait", "--json", "job.sh")
    assert seen.code == 0, seen.err
    aj_id = seen.json["item"]["id"]
    states = [line.split("  ")[1] for line in seen.err.splitlines() if "Z  " in line]
    assert (states[0], states[-1]) == ("queued", "completed")
    assert "files of the job: " in seen.err
    logs = live("logs", aj_id)
    assert sorted(logs.raw.splitlines()) == [b"err", b"out"]
    lines = live("logs", f"q-{aj_id}", "--json").json["lines"]
    assert {(line["text"], line["stream"], line["rank"]) for line in lines} == {("out", "out", 0), ("err", "err", 0)}
    assert live("logs", aj_id, "--grep", "ou").raw == b"out\n"
    assert live("logs", aj_id, "--tail", "1").raw in (b"out\n", b"err\n")
    status = live("status", aj_id, "--json").json["item"]
    assert (status["workload"]["state"], status["workload"]["exitCode"]) == ("completed", 0)
    assert [event["state"] for event in status["events"]][-1] == "completed"
    assert live("job", "list", "-o", "name", "-s", "completed").out.split() == [aj_id]
    assert live("job", "list", "--json").json["items"][0]["id"] == aj_id
    assert live("job", "why", aj_id).rows == [["1", "it has ended: completed"]]


@pytest.mark.rule("C-022", "C-078", "C-068", "C-014", "LC-21", "LC-22")
def test_the_code_of_a_job_that_failed(live: Shell) -> None:
    live.write("bad.sh", "exit 3\n")
    plain = live("run", "--wait", "bad.sh")
    assert plain.code == 1
    assert f"hint: `aj logs {plain.out.splitlines()[1].split()[1]}`" in plain.err
    own = live("run", "--wait", "--exit-status", "-o", "name", "bad.sh")
    assert own.code == 3
    aj_id = own.out.strip()
    assert live("wait", aj_id).code == 1
    assert live("wait", aj_id, "--exit-status").code == 3
    records = [json.loads(line) for line in live("wait", aj_id, "-o", "jsonl").out.splitlines()]
    assert [record["type"] for record in records] == ["state"] * (len(records) - 1) + ["result"]
    assert (records[-1]["state"], records[-1]["exitCode"]) == ("errored", 3)


@pytest.mark.rule("C-076", "C-334", "C-014")
def test_a_limit_of_the_waiting_stops_nothing(live: Shell) -> None:
    live.write("long.sh", "exec sleep 100\n")
    seen = live("run", "--wait", "--wait-timeout", "0", "--json", "long.sh")
    error = seen.json["error"]
    assert (seen.code, error["type"]) == (124, "TimedOut")
    assert "; nothing was stopped" in seen.err
    submission = error["details"]["submission"]
    assert (submission["status"], submission["job"]["state"] in ("completed", "errored")) == ("submitted", False)
    aj_id = submission["id"]
    assert live("terminate", aj_id, "--grace", "1s", "--wait", "-o", "name").out == f"{aj_id}\n"


@pytest.mark.rule("C-014", "C-023", "C-059", "C-299", "T55", "LC-19")
def test_the_log_of_a_followed_job_is_all_of_stdout(live: Shell) -> None:
    live.write("talk.sh", "printf '\\033[31mred\\007 \\377\\n'; echo second\n")
    seen = live("run", "--follow", "talk.sh")
    assert seen.code == 0, seen.err
    assert seen.raw == b"\x1b[31mred\x07 \xff\nsecond\n"
    assert "submitted project_talk_" in seen.err
    records = [json.loads(line) for line in live("run", "--follow", "-o", "jsonl", "talk.sh").out.splitlines()]
    assert [record["type"] for record in records] == ["submission", "log", "log", "result"]
    assert (records[0]["status"], records[2]["text"], records[3]["state"]) == ("submitted", "second", "completed")


@pytest.mark.rule("C-237", "C-031", "C-248", "C-293", "C-294", "C-029")
def test_standing_in_line(live: Shell) -> None:
    seen = live("run", "--queue", "true")
    assert seen.code == 0
    ticket = seen.out.split()[-1]
    assert seen.out.startswith("queued project_") and f" as {ticket}\n" in seen.out
    waited = live("queue", "wait", ticket)
    assert (waited.code, waited.rows[0][0], waited.rows[0][2]) == (0, ticket, "completed")
    assert live("queue", "wait", ticket, "--timeout", "0").code == 0
    name = live("run", "--queue", "-o", "name", "true").out.strip()
    assert name.startswith("q-")
    unknown = live("queue", "wait", "q-ffffffff", "--json")
    assert (unknown.code, unknown.json["error"]["type"]) == (3, "NotFound")
    both = live("queue", "wait", ticket, "q-ffffffff")
    assert (both.code, len(both.rows)) == (3, 1)
    assert live("wait", ticket).code == 0


@pytest.mark.rule("C-024", "C-025", "C-022", "C-076", "C-078", "T52", "OP-03", "OP-04")
def test_inside_a_running_job_and_its_end(live: Shell) -> None:
    live.write("long.sh", "echo ready; exec sleep 100\n")
    aj_id = live("run", "-e", "MARK=here", "-o", "name", "long.sh").out.strip()
    job = live.home.layout.job(aj_id)
    _until(lambda: b"ready" in live("logs", aj_id).raw)
    timed = live("wait", aj_id, "--timeout", "0", "-o", "jsonl")
    assert (timed.code, json.loads(timed.raw.splitlines()[-1])["error"]["type"]) == (124, "TimedOut")
    assert live("exec", aj_id, "echo $MARK > mark").code == 0
    assert (job / "work/node0/mark").read_text() == "here\n"
    assert live("exec", aj_id, "sh", "-c", "exit 7").code == 7
    assert live("exec", aj_id, "sh", "-c", 'test "$1" = "a b"', "x", "a b").code == 0
    gone = live("exec", aj_id, "no-such-program", "x")
    assert gone.code in (1, 127)
    seen = live("terminate", aj_id, "--grace", "5s", "--wait", "--json")
    assert (seen.code, seen.json["status"], seen.json["items"][0]["state"]) == (0, "ok", "terminated")
    again = live("job", "cancel", aj_id, "--json")
    assert (again.code, again.json["status"]) == (0, "noop")
    assert live("exec", aj_id, "true", "x").code == 5


@pytest.mark.rule("C-026", "C-025b", "C-006", "C-005", "OP-05")
def test_once_more_and_away(live: Shell) -> None:
    live.write("count.sh", "echo again\n")
    aj_id = live("run", "--wait", "-o", "name", "count.sh").out.strip()
    live("wait", aj_id, "--cleaned")
    seen = live("resubmit", aj_id, "--json")
    assert (seen.code, seen.json["items"][0]["detail"]) == (0, "revision 1")
    assert live("wait", aj_id, "--cleaned").code == 0
    assert live("logs", aj_id).raw == b"again\n"
    assert live("job", "delete", aj_id).code == 5
    assert live("job", "delete", aj_id, "--yes", "--json").json["items"][0]["id"] == aj_id
    assert live("status", aj_id, "--json").code in (0, 3)
    assert live("logs", aj_id).code == 3


@pytest.mark.rule("C-026", "C-078", "C-021")
def test_the_failed_ones_of_a_batch_once_more(live: Shell) -> None:
    failing = [live("run", "--wait", "-o", "name", "sh", "-c", f"exit {code}").out.strip() for code in (3, 4)]
    live("wait", *failing, "--cleaned")
    listed = live("list", "-s", "errored", "-o", "name").out
    again = live("resubmit", listed, "nosuchjob", "--json")
    assert again.code == 3
    assert [(item["id"], item["status"]) for item in again.json["items"]] == [
        *((aj_id, "ok") for aj_id in reversed(failing)),
        ("nosuchjob", "failed"),
    ]
    good = live("run", "-o", "name", "true").out.strip()
    waited = live("wait", good, *failing, "nosuchjob")
    assert (waited.code, waited.err.splitlines()[-1][:15]) == (3, "hint: `aj logs ")
    first, wrong, missing = waited.err.splitlines()[-2].split("; ")
    assert (first, missing) == ("1 completed", "1 not waited for: nosuchjob")
    assert wrong.startswith("2 errored: ") and all(aj_id in wrong for aj_id in failing)
    assert live("wait", good).err == "" or "errored" not in live("wait", good).err
    seen = live("status", *failing)
    assert [(row[0], row[1], row[5]) for row in seen.rows] == [
        (failing[0], "errored", "3"),
        (failing[1], "errored", "4"),
    ]
    whole = live("status", "nosuchjob", *failing, "--json")
    assert (whole.code, whole.json["kind"], whole.json["failures"][0]["id"]) == (3, "status.list", "nosuchjob")
    assert [item["workload"]["exitCode"] for item in whole.json["items"]] == [3, 4]
    assert live("status", *failing, "-o", "name").out.split() == failing
    assert live("schema", "status.list").json["title"] == "status.list"
    assert live("status", *failing, "--watch").code == 2


@pytest.mark.rule("C-078", "C-005", "C-022")
def test_one_of_several_that_is_missing(live: Shell) -> None:
    aj_id = live("run", "-o", "name", "true").out.strip()
    live("wait", aj_id)
    seen = live("terminate", aj_id, "nosuchjob", "--json")
    assert seen.code == 3
    assert [(item["status"], bool(item["error"])) for item in seen.json["items"]] == [("noop", False), ("failed", True)]
    waited = live("wait", aj_id, "nosuchjob")
    assert waited.code == 3
    assert "aj: nosuchjob: no job `nosuchjob`" in waited.err
    single = live("terminate", "nosuchjob", "--json")
    assert (single.code, single.json["error"]["type"]) == (3, "NotFound")
    by_name = live("status", live("status", aj_id, "--json").json["item"]["workload"]["name"], "--json")
    assert by_name.json["item"]["workload"]["id"] == aj_id


@pytest.mark.rule("C-032", "C-247", "C-295", "C-033", "C-250")
def test_tickets_that_cannot_move(live: Shell) -> None:
    ticket = live("run", "--queue", "-o", "name", "true").out.strip()
    live("queue", "wait", ticket)
    assert live("queue", "cancel", ticket, "--json").code == 5
    assert live("queue", "cancel").code == 2
    assert live("queue", "cancel", "--all-pending", "--json").json["items"] == []
    assert live("queue", "retry", ticket).code == 5
    assert live("queue", "reconcile").err.endswith("no ticket has an unknown outcome\n")
    assert live("queue", "resume", "--json").json["action"] == "resume"


@pytest.mark.rule("C-050", "C-225", "C-222", "C-074", "C-221")
def test_the_daemon(live: Shell) -> None:
    assert (live("daemon", "status").code, live("daemon", "status").out) == (3, "not running\n")
    assert live("daemon", "stop", "--json").json["status"] == "noop"
    started = live("daemon", "start", "--json").json
    assert (started["status"], started["items"][0]["state"]) == ("ok", "running")
    assert live("daemon", "start").out == "running\n"
    item = live("daemon", "status", "--json").json["item"]
    assert (item["state"], item["pid"]) == ("running", started["items"][0]["pid"])
    assert live("daemon", "restart", "--json").json["items"][0]["pid"] != item["pid"]
    assert "started" in live("daemon", "logs", "--tail", "1").out or live("daemon", "logs").out
    assert live("daemon", "stop").out == "stopped\n"
    assert live("daemon", "status", "--json").json["item"]["state"] == "stopped"


def _until(happens: object) -> None:
    """Wait for something with a limit, by looking; each look is a whole command."""
    for _ in range(200):
        if happens():  # type: ignore[operator]
            return
    raise AssertionError("it never happened")
