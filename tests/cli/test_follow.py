"""Staying with a job: what it waits for is told, its end comes last, and one document holds all of it."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.conftest import LOCAL, Shell
from tests.cli.test_interrupt import begin, interrupted


@pytest.mark.rule("C-014", "C-017", "C-022", "C-054")
def test_one_document_holds_the_end_of_the_job(live: Shell) -> None:
    live.write("bad.sh", "exit 3\n")
    seen = live("run", "--wait", "--json", "true")
    item = seen.json["item"]
    same = live("status", item["id"], "--json").json["item"]["workload"]
    same |= {
        key: item["job"][key] for key in ("cleanedAt", "vms", "costSource", "vmDurationMs")
    }  # the cleaning goes on after the end
    assert (seen.code, item["job"]) == (0, same)
    assert (item["job"]["state"], item["job"]["exitCode"]) == ("completed", 0)
    failed = live("run", "--wait", "--exit-status", "--json", "bad.sh")
    error = failed.json["error"]
    job = error["details"]["submission"]["job"]
    assert (failed.code, error["type"], job["state"], job["exitCode"]) == (3, "JobFailed", "errored", 3)
    assert f"hint: `aj logs {job['id']}`, `aj status {job['id']}`" in failed.err
    line = live("run", "--wait", "-o", "jsonl", "true").out
    assert (line.count("\n"), json.loads(line)["job"]["state"]) == (1, "completed")


@pytest.mark.rule("C-014", "C-053", "C-054")
@pytest.mark.parametrize("form", ["yaml", "name"])
def test_a_log_has_no_place_in_a_single_document(aj: Shell, form: str) -> None:
    aj.template("local", LOCAL)
    seen = aj("run", "-t", "local", "--follow", "-o", form, "true")
    assert (seen.code, seen.err.startswith(f"aj: `-o {form}` has no place for the log")) == (2, True)


@pytest.mark.rule("C-022")
def test_a_wait_for_the_beginning_ends_when_it_runs_and_tells_when_it_never_did(live: Shell) -> None:
    live.write("code")
    job = live("run", "-n", "1", "-o", "name", "sleep", "60").out.strip()
    begun = live("wait", job, "--running", "--timeout", "50s")
    assert begun.code == 0 and begun.out.splitlines()[-1].endswith("running")
    assert live("exec", job, "true").code == 0
    assert json.loads(live("wait", job, "--running", "-o", "jsonl").out.splitlines()[-1])["state"] == "running"
    assert live("terminate", job, "--wait").code == 0
    assert live("wait", job, "--running").code == 1
    done = live("run", "-n", "1", "--wait", "--json", "true").json["item"]["id"]
    assert live("wait", done, "--running").code == 0, "it ran, and ended well"
    refused = live("wait", done, "--running", "--cleaned")
    assert refused.code == 2 and "do not go together" in refused.err


@pytest.mark.rule("C-014", "C-052")
def test_a_record_of_the_result_ends_the_stream(live: Shell) -> None:
    live.write("bad.sh", "echo said; exit 3\n")
    seen = live("run", "--follow", "-o", "jsonl", "bad.sh")
    records = [json.loads(line) for line in seen.out.splitlines()]
    assert (seen.code, [record["type"] for record in records]) == (1, ["submission", "log", "result"])
    assert (records[-1]["state"], records[-1]["exitCode"]) == ("errored", 3)


@pytest.mark.rule("C-023", "C-052")
def test_the_end_is_told_after_the_last_bytes(live: Shell) -> None:
    """Both streams of one terminal: the last words of the program stand before the last state."""
    live.write("talk.sh", "for i in $(seq 2000); do echo line $i; done\n")
    with begin(live, "run", "--follow", "talk.sh", both=True) as child:
        out, _ = child.communicate(timeout=60)
    lines = out.decode().splitlines()
    end = next(at for at, line in enumerate(lines) if re.search(r"Z  completed", line))
    assert lines.index("line 2000") < end
    assert child.returncode == 0


@pytest.mark.rule("C-022", "C-079", "LC-21")
def test_what_a_job_in_line_waits_for_is_told(live: Shell) -> None:
    live.write(".azure_jobs/aj.toml", 'template = "local"\n')
    live("config", "set", "local.slots", "1", "--user")
    live("daemon", "restart")
    live.write("long.sh", "exec sleep 100\n")
    first = live("run", "-o", "name", "long.sh").out.strip()
    with begin(live, "run", "--wait", "true") as child:
        assert child.stderr is not None
        for line in child.stderr:
            if b"queued  a free slot" in line:
                break
        code, err, _ = interrupted(child)
    assert (code, "goes on without this command" in err) == (130, True)
    second = live("job", "list", "-s", "queued", "-o", "name").out.strip()
    timed = live("wait", second, "--timeout", "3s", "-o", "jsonl")
    records = [json.loads(line) for line in timed.out.splitlines()]
    assert timed.code == 124 and f"{second} is queued after 3 s; nothing was stopped" in timed.err
    assert [record["waitingFor"] for record in records if record.get("type") == "state"][-1].startswith("a free slot")
    live("terminate", second, first, "--grace", "1s", "--wait")
