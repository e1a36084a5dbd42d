"""Azure from the command line, through a real daemon: what there is, and the jobs of workspaces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM, rfc3339
from aj.cli import submit
from aj.client import cloudjobs, cloudlogs
from aj.model.record import RecordState
from aj.model.ticket import Mode, Submitted
from aj.template.build import Built
from aj.wire.messages import TicketAnswer
from tests.cli import azure, seed
from tests.cli.azure import LOGS, RUN, Place
from tests.cli.conftest import Shell
from tests.conftest import RunningDaemon
from tests.engine.cloud import ONE, TWO, add_job, subscribe, supply
from tests.servers.authority import TENANT
from tests.servers.loopback import Stall, problem

HANDLE = f"aml://{ONE}/rg-one/ws-one/{RUN}"
CLOUDY = ("azure", "urllib3", "msal", "certifi", "cryptography", "requests")


@pytest.fixture
def place(
    aj: Shell, daemon: RunningDaemon, loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    for module in (cloudjobs, cloudlogs):  # a person waits seconds between two looks
        monkeypatch.setattr(module, "LOOK_S", 0.02)
        monkeypatch.setattr(module, "SLOWEST_S", 0.02)
    with azure.at(aj, tmp_path) as found:
        found("daemon", "start")
        yield found


def recorded(place: Place, *, ticket: bool = True, journal: bool = True) -> None:
    """Leave the traces of a submission: a ticket, a line in the journal."""
    key = place.shell.home.project().key
    result = Submitted(RUN, HANDLE)
    about = {"name": RUN, "service": "aml", "template": "gpu"}
    if ticket:
        seed.write_tickets(place.shell.home, key, seed.ticket("0a1b2c3d", result=result, **about))
    if journal:
        line = seed.record("0a1b2c3d", azure_name=RUN, handle=HANDLE, **about)
        seed.write_journal(place.shell.home, key, line)


# Who


@pytest.mark.rule("A-171", "C-035", "A-203", "C-291", "A-022", "C-071")
def test_who_is_signed_in_and_what_nobody_can_do(place: Place) -> None:
    place.choose()
    fields = dict(line.split("\t", 1) for line in place("auth", "status").out.splitlines() if "\t" in line)
    assert fields["user"] == "ada@example.com"
    assert (fields["logged in"], fields["tenant"], fields["credential"]) == ("yes", TENANT, "environment")
    assert (fields["subscription"], fields["workspace"]) == (ONE, "ws-one")
    seen = place("auth", "status", "--json")
    item = seen.json["item"]
    assert [one["scope"] for one in item["tokens"]][2] == "https://storage.azure.com/.default"
    assert all(one["expires_at"] for one in item["tokens"])
    assert not any(token in seen.out for token in place.authority.tokens)
    add_job(place.azure, "alpha")
    place("daemon", "stop")
    place.authority.refuses = True
    error = place("auth", "status", "--json", code=4).json["error"]
    assert error["type"] == "AuthError"
    assert error["message"].startswith(f"not signed in for tenant {TENANT}: environment: ")
    assert error["hint"].startswith("set AZURE_CLIENT_ID, AZURE_TENANT_ID")
    for words in (("quota", "list"), ("sku", "list"), ("image", "list"), ("job", "list", "--cloud"), ("job", "stats")):
        assert "not signed in" in place(*words, code=4).err
    told = place("status", "alpha", code=4).err
    assert told.startswith("aj: no job `alpha` on this machine, and Azure cannot be asked: not signed in")
    for words in (("list",), ("queue", "list"), ("job", "list"), ("config", "show"), ("template", "list")):
        place(*words)


# What there is


@pytest.mark.rule("A-068", "A-170", "A-173", "A-174", "A-175", "C-037", "C-038", "C-055", "C-218", "C-004")
def test_quota_machines_and_images(place: Place) -> None:
    assert (place("quota", "list").err, place("image", "list", "-o", "name").raw) == ("no quota\n", b"")
    supply(place.azure)
    place.azure.arm.images[ONE] = [{"names": ["latest", "torch:cuda12"]}, {"names": ["base"]}]
    seen = place("quota", "list", "--sing", "--refresh")
    head = ["service", "place", "region", "series", "accelerator", "tier", "used/limit", "free", "unit"]
    assert seen.out.splitlines()[0].split("\t") == [*head, "user used/limit"]
    assert seen.rows[0] == [
        "sing",
        "vc-blue",
        "northeurope",
        "H100v5",
        "H100",
        "Premium",
        "16/16",
        "0",
        "GPUs",
        "16/48",
    ]
    assert seen.rows[2][6:] == ["3/no limit", "", "vCPUs", ""]
    assert seen.err == "2 more that are 0 or of no use to a job: `--all`, `--full`\n"
    kept = place("ql", "--sing", "--json").json
    assert (kept["kind"], kept["items"][0]["limit"], kept["failures"], kept["is_stale"]) == (
        "quota.list",
        16,
        [],
        False,
    )
    assert 0 < kept["age_s"] < 60 and kept["as_of"] < rfc3339(4e9)
    full = place("quota", "list", "--sing", "--full", "--json").json["items"]
    assert {item["tier"] for item in full} >= {"Spot", "Premium"}
    assert "A100v4" in {item["series"] for item in place("quota", "list", "--sing", "--all", "--json").json["items"]}
    assert [row[0] for row in place("sku", "list").rows] == ["80G8-H100-NvLink", "80G4-H100", "C1", "C2"]
    assert place("sku", "list", "--all", "-o", "name").out.split()[0] == "Singularity.A8"
    images = place("image", "list", "--refresh", "-f", "LATEST", "--json").json
    assert images["items"] == [
        {"name": "torch:cuda12", "image": "amlt-sing/torch:cuda12", "names": ["latest", "torch:cuda12"]}
    ]
    assert place("image", "list", "-o", "name").out.split() == ["amlt-sing/base", "amlt-sing/torch:cuda12"]
    assert json.loads(place("sku", "list", "-o", "jsonl").out.splitlines()[0])["sku"] == "80G8-H100-NvLink"


@pytest.mark.rule("A-178", "A-170", "C-218")
def test_what_could_not_be_read_and_what_is_old_is_told(place: Place) -> None:
    place.azure.arm_server.on("Microsoft.Singularity", problem(404, "Gone", "no"))
    error = place("image", "list", "--json", code=1).json["error"]
    assert (error["type"], "1 part gave no answer" in error["message"]) == ("RemoteError", True)
    subscribe(place.azure, TWO)
    place.azure.arm.images[ONE] = [{"names": ["base"]}]
    place.azure.arm_server.on(f"{TWO}/providers/Microsoft.Singularity", problem(403, "AuthorizationFailed", "no"))
    seen = place("image", "list")
    assert seen.rows == [["amlt-sing/base", "base"]]
    assert f"aj: warning: {TWO}: could not list the images of subscription {TWO}" in seen.err
    again = place("image", "list", "--json").json
    assert [part["part"] for part in again["failures"]] == [TWO]
    place("daemon", "stop")
    place.door.hangs_up = True  # no network
    fresh = place("image", "list", "--json").json
    assert (fresh["is_stale"], fresh["items"]) == (False, again["items"])
    place.settings('[quota]\nmax_age = "0s"\n')
    old = place("image", "list")
    assert old.rows == [["amlt-sing/base", "base"]]
    assert "as of " in old.err and " ago" in old.err
    assert "could not be renewed: the sign-in service cannot be reached" in old.err
    stale = place("image", "list", "--json").json
    assert (stale["is_stale"], stale["warnings"][-1]["code"]) == (True, "stale")
    assert place("image", "list", "--refresh", code=1).rows == [["amlt-sing/base", "base"]]
    assert "the sign-in service cannot be reached" in place("quota", "list", code=1).err


# Jobs


@pytest.mark.rule("C-020", "A-162", "A-177", "C-282", "C-054")
def test_jobs_of_a_workspace_are_listed(place: Place) -> None:
    assert "no workspace is chosen" in place("job", "list", "--cloud", code=2).err
    place.choose()
    for number in range(4):
        status = ("Completed", "Running")[number % 2]
        add_job(
            place.azure, f"job-{number}", status, tags={"n": str(number)}, experimentName=("aj", "tune")[number // 2]
        )
    seen = place("job", "list", "--cloud")
    assert seen.out.splitlines()[0].split("\t")[:5] == ["name", "state", "service", "experiment", "compute"]
    assert [row[:3] for row in seen.rows][:2] == [["job-3", "running", "aml"], ["job-2", "completed", "aml"]]
    for words, due in (
        (("--cloud", "-s", "completed"), ["job-2", "job-0"]),
        (("-e", "tune"), ["job-3", "job-2"]),
        (("--tag", "n:1"), ["job-1"]),
        (("-T", "sweep"), []),
        (("-a",), []),
        (("--ws", "ws-one", "-s", "Running", "-n", "0"), ["job-3", "job-1"]),
        (("--ws", f"{ONE}/rg-one/ws-one", "--all"), ["job-3", "job-2", "job-1", "job-0"]),
        (("--ws", "*"), ["job-3", "job-2", "job-1", "job-0"]),
        (("--cloud", "--session", "all"), ["job-3", "job-2", "job-1", "job-0"]),
    ):
        assert place("job", "list", "-o", "name", *words).out.split() == due, words
    cut = place("job", "list", "--cloud", "-n", "1", "--json").json
    assert (cut["truncated"], cut["scope"]["workspace"]) == (True, f"ws-one ({ONE}/rg-one)")
    assert [warning["code"] for warning in cut["warnings"]] == ["truncated"]
    assert "is no state" in place("job", "list", "--cloud", "-s", "success", code=2).err
    assert "is none of queued" in place("job", "list", "-s", "success", code=2).err
    assert "does not know it" in place("job", "list", "--cloud", "--agent", "x", code=2).err
    assert "no workspace is called ws-won" in place("job", "list", "--ws", "ws-won", code=3).err
    assert place("job", "list", "--cloud", "-o", "name", AJ_WORKSPACE="ws-one").out.split()[0] == "job-3"


@pytest.mark.rule("C-020", "C-021")
def test_submissions_stand_among_the_jobs_of_this_machine(place: Place) -> None:
    key = place.shell.home.project().key
    recorded(place, ticket=False)
    later = rfc3339(seed.BEGAN + 60)
    lost = seed.record("0000000b", service="sing", ts=later, state=RecordState.UNKNOWN, name="lost", shape=None)
    seed.write_journal(place.shell.home, key, lost, seed.record("0000000c", ts=later))
    seen = place("job", "list")
    assert [row[:4] for row in seen.rows] == [
        ["0000000b", "unknown", "sing", "lost"],
        ["0a1b2c3d", "submitted", "aml", RUN],
    ]
    items = place("job", "list", "--json").json["items"]
    assert (items[1]["name"], items[1]["template"], items[1]["exitCode"]) == (RUN, "gpu", None)
    assert place("job", "list", "-s", "submitted", "-o", "name").out == "0a1b2c3d\n"
    assert place("job", "list", "-s", "running").err == "no jobs\n"
    assert place("status", "-o", "name").out.split() == ["0000000b", "0a1b2c3d"]
    assert place("job", "list", "-n", "1", "--json").json["truncated"] is True


@pytest.mark.rule("C-005", "C-021", "A-163", "A-160", "C-156")
def test_a_recorded_job_has_many_names(place: Place) -> None:
    place.azure.add_workspace()  # and none is chosen: the record knows where it went
    recorded(place)
    add_job(place.azure, RUN, "Failed", tags={"team": "a"})
    place.azure.plane.details[RUN] = failed("no such image")
    for word in ("0a1b2c3d", "q-0a1b2c3d", "0a1b", RUN):
        fields = dict(line.split("\t", 1) for line in place("status", word).out.splitlines())
        assert (fields["state"], fields["status"], fields["error"]) == ("errored", "Failed", "UserError: no such image")
        assert (fields["name"], fields["tags"], fields["workspace"]) == (RUN, "team:a", f"{ONE}/rg-one/ws-one")
    item = place("job", "show", RUN, "--json").json["item"]
    assert (item["workload"], item["cloud"]["name"], item["cloud"]["shown_state"]) == (None, RUN, "errored")
    assert item["ticket"]["ticket"] == "q-0a1b2c3d"
    ticket = place.shell.home.layout.ticket(place.shell.home.project().key, "q-0a1b2c3d")
    place("daemon", "stop")
    ticket.unlink()  # pruned long since: the journal remembers
    for word in ("0a1b2c3d", "q-0a1b2c3d", "0a1b", RUN):
        item = place("status", word, "--json").json["item"]
        assert (item["cloud"]["name"], item["ticket"]) == (RUN, None)


@pytest.mark.rule("C-024", "C-026")
def test_what_reaches_this_machine_alone_says_so(place: Place) -> None:
    recorded(place)
    for verb, more in (("exec", ("ls",)), ("resubmit", ()), ("job why", ())):
        refused = place(*verb.split(), "0a1b2c3d", *more, code=2).err
        assert refused.startswith(
            f"aj: 0a1b2c3d is run by `aml`: `aj {verb}` reaches jobs of this machine alone\nhint: "
        )
    assert place.azure.arm_server.got == []


@pytest.mark.rule("C-005", "A-177")
def test_a_name_that_is_not_ours_is_asked_of_the_chosen_workspace(place: Place) -> None:
    unknown = place("status", "alpha", code=3)
    assert unknown.err.startswith("aj: no job `alpha`\n")
    assert place.azure.arm_server.got == []
    place.choose()
    add_job(place.azure, "alpha", "Running")
    assert "state\trunning" in place("status", "alpha").out
    assert place("logs", "alpha").err == "nothing is printed yet: alpha is running\n"
    missing = place("status", "beta", "--json", code=3).json["error"]
    assert (missing["message"], missing["code"]) == ("no job `beta`, and none in the chosen workspace", "no-such-job")
    assert "and none in workspace ws-one" in place("job", "show", "beta", "--ws", "ws-one", code=3).err
    assert "no workspace is called ws-won" in place("terminate", "beta", "--ws", "ws-won", code=3).err


@pytest.mark.rule("C-023", "A-166", "A-167", "A-168", "A-169", "C-059")
def test_logs_of_a_job_of_a_workspace(place: Place) -> None:
    place.azure.add_workspace()
    recorded(place)
    add_job(place.azure, RUN, "Running")
    place.ran()
    first, second, system = LOGS
    seen = place("logs", "0a1b2c3d")
    assert seen.raw == LOGS[first]
    assert seen.err == f"{first}: 1 of 3 files; `--list` names them, `--all` prints them\n"
    for words, due in (
        (("--rank", "1"), LOGS[second]),
        (("--file", system), LOGS[system]),
        (("--file", "std_log_process_1.txt"), LOGS[second]),
        (("--tail", "1"), b"loss 2\n"),
        (("--grep", "loss"), b"loss 2\n"),
        (("--all",), LOGS[first] + LOGS[second] + LOGS[system]),
        (("--all", "--grep", "s"), b"loss 2\nsys\n"),
    ):
        assert place("logs", RUN, *words).raw == due, words
    assert place("logs", RUN, "--list").rows == [[path, str(len(data))] for path, data in LOGS.items()]
    assert place("logs", RUN, "--list", "--json").json["items"][0] == {"path": first, "size_bytes": 11}
    lines = place("logs", RUN, "--all", "--json").json["lines"]
    assert [(line["file"], line["rank"], line["source"], line["text"]) for line in lines][1:] == [
        (first, 0, "user", "loss 2"),
        (second, 1, "user", "two"),
        (system, None, "platform", "sys"),
    ]
    assert "there is no log file of rank 7" in place("logs", RUN, "--rank", "7", code=3).err
    assert "`--attempt`: the log files" in place("logs", RUN, "--attempt", "1", code=2).err
    place.azure.plane.files[first] += b"\xff no line"
    place.end(RUN, "Completed")
    followed = place("logs", RUN, "-f", "--tail", "1")
    assert followed.raw == b"\xff no line"
    items = [json.loads(line) for line in place("logs", RUN, "-f", "-o", "jsonl").raw.splitlines()]
    assert [item["text"] for item in items] == ["one", "loss 2", "\\xff no line"]
    assert {item["type"] for item in items} == {"log"}
    kept = [path.read_bytes() for path in place.shell.home.layout.state.rglob("*") if path.is_file()]
    assert not any(place.azure.plane.signature.encode() in data for data in kept)


@pytest.mark.rule("C-025", "A-164", "T71", "C-078")
def test_jobs_of_a_workspace_are_asked_to_end(place: Place) -> None:
    place.choose()
    recorded(place)
    add_job(place.azure, RUN, "Running")
    add_job(place.azure, "over", "Completed")
    seen = place("terminate", "0a1b2c3d", "over", "--json").json
    assert [(item["id"], item["status"], item["state"]) for item in seen["items"]] == [
        ("0a1b2c3d", "ok", "running"),
        ("over", "noop", "completed"),
    ]
    assert "(CancelRequested)" not in place("status", RUN).out and "CancelRequested" in place("status", RUN).out
    place.end(RUN, "Canceled")
    waited = place("job", "cancel", RUN, "--wait", "--json").json["items"][0]
    assert (waited["id"], waited["state"]) == ("0a1b2c3d", "terminated")
    add_job(place.azure, "slow", "Running")
    assert place("terminate", "slow", "--wait", "--timeout", "0", code=124).code == 124
    several = place("terminate", "over", "nobody", "--json", code=3).json
    assert [item["status"] for item in several["items"]] == ["noop", "failed"]


@pytest.mark.rule("C-022", "C-005", "C-076")
def test_jobs_of_a_workspace_are_waited_for(place: Place) -> None:
    place.choose()
    recorded(place)
    add_job(place.azure, RUN, "Running")
    add_job(place.azure, "over", "Completed")
    late = place("wait", RUN, "--timeout", "0", code=124)
    assert late.out.split()[::2] == ["0a1b2c3d", "running"]
    assert f"aj: {RUN} is running after 0 s; nothing was stopped" in late.err
    place.end(RUN, "Failed")
    place.azure.plane.details[RUN] = failed("no such image")
    seen = place("wait", "0a1b2c3d", "over", code=1)
    assert {tuple(line.split("  ")[::2]) for line in seen.out.splitlines()} == {
        ("0a1b2c3d", "errored (Failed)"),
        ("over", "completed"),
    }
    items = [json.loads(line) for line in place("wait", RUN, "-o", "jsonl", code=1).raw.splitlines()]
    assert [(item["type"], item["id"], item["state"], item["message"]) for item in items] == [
        ("state", "0a1b2c3d", "errored", "UserError: no such image"),
        ("result", "0a1b2c3d", "errored", "UserError: no such image"),
    ]


def failed(words: str) -> dict:
    return {"runId": RUN, "status": "Failed", "error": {"error": {"code": "UserError", "message": words}}}


@pytest.mark.rule("C-014", "C-009", "C-017", "C-076")
def test_a_submission_stays_with_its_job_in_a_workspace(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def submitted(recipe: object, built: Built, *rest: object) -> tuple[TicketAnswer, object]:
        ticket = seed.ticket("0a1b2c3d", service="aml", mode=Mode.DIRECT, result=Submitted(RUN, HANDLE))
        return TicketAnswer(ticket), built.spec

    monkeypatch.setattr(submit, "_submit", submitted)
    place.choose()
    place.shell.template(
        "aml",
        "base:\nconfig: {target: {service: aml, name: gpu}, environment: {image: x}, jobs: [{sku: G1}]}\n",
    )
    add_job(place.azure, RUN, "Running", start="2027-01-15T08:00:00Z")
    place.ran()
    run = ("run", "-t", "aml", "-n", "1", "-p", "1", "--experiment", "e")
    late = place(*run, "--wait", "--wait-timeout", "0", "true", code=124)
    assert "0a1b2c3d  " in late.err and "running after 0 s" in late.err
    assert "running after 0 s" in place(*run, "--follow", "--wait-timeout", "0", "true", code=124).err
    place.end(RUN, "Completed")
    item = place(*run, "--wait", "--json", "true").json["item"]
    assert (item["status"], item["job"]["state"], item["job"]["name"]) == ("submitted", "completed", RUN)
    followed = place(*run, "--follow", "true")
    assert followed.raw == LOGS["user_logs/std_log_process_0.txt"]
    place.end(RUN, "Failed")
    place.azure.plane.details[RUN] = failed("no such image")
    error = place(*run, "--wait", "--json", "true", code=1).json["error"]
    assert (error["type"], error["hint"]) == ("JobFailed", "`aj logs 0a1b2c3d`, `aj status 0a1b2c3d`")
    assert error["message"] == "job 0a1b2c3d is errored (Failed): UserError: no such image"
    assert error["details"]["submission"]["job"]["message"] == "UserError: no such image"
    assert "UserError: no such image" in place(*run, "--follow", "true", code=1).err


@pytest.mark.rule("C-025b", "A-165", "C-006")
def test_a_job_of_a_workspace_is_deleted_after_a_yes(place: Place) -> None:
    place.choose()
    recorded(place)
    add_job(place.azure, RUN, "Running")
    assert "not without a yes" in place("job", "delete", RUN, code=5).err
    refused = place("job", "delete", RUN, "-y", code=5)
    assert refused.err == f"aj: job {RUN} is Running\nhint: `aj job cancel {RUN}` first\n"
    place.end(RUN, "Failed")
    assert place("job", "delete", RUN, "-y", "--json").json["status"] == "ok"
    gone = place("job", "delete", "0a1b2c3d", "-y", "--json").json
    assert (gone["status"], gone["items"][0]["detail"]) == ("noop", "it was gone already")
    assert place("job", "delete", "stranger", "-y", code=3).code == 3


@pytest.mark.rule("C-028", "A-163")
def test_totals_of_a_workspace_and_of_this_machine(place: Place) -> None:
    here = place("job", "stats", "--json").json
    assert (here["scope"], here["overview"]["total"], here["overview"]["gpu_hours"]) == (None, 0, None)
    place.choose()
    now = rfc3339(place.azure.session.clock.now())
    add_job(place.azure, "a", "Completed", created=now)
    add_job(place.azure, "b", "Failed", created=now)
    add_job(place.azure, "old", "Failed", created="2020-01-01T00:00:00Z", experimentName="x")
    resources = place.azure.arm.resources
    resources.update({path: resources.pop(path) for path in list(resources) if path.endswith("/jobs/old")})
    seen = place("job", "stats")
    assert seen.rows[0][:7] == ["all", "", "2", "0", "0", "1", "1"]
    assert seen.err == "over 2 jobs\n"
    whole = place("job", "stats", "--json", "-d", "9999").json
    assert whole["overview"]["success_rate"] == 0.3333
    assert [(part["name"], part["total"]) for part in whole["groups"]["experiment"]] == [("aj", 2), ("x", 1)]
    assert place("job", "stats", "-n", "1", "--json").json["truncated"] is True


# Weight


@pytest.mark.rule("C-222", "C-220")
def test_a_question_that_azure_does_not_answer_keeps_no_daemon_alive(place: Place) -> None:
    """The stop does not wait for a question; whoever asked it asks the next daemon."""
    place.azure.arm_server.on("GET /subscriptions", Stall.BEFORE_ANSWER)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(place, "quota", "list", "--sing")
        while "GET /subscriptions" not in place.azure.arm_server.targets():
            place("queue", "list")  # reads never wait behind it
        begun = SYSTEM.monotonic()
        place("daemon", "stop")
        assert SYSTEM.monotonic() - begun < 10  # its limit is 15 s, four times
        assert asked.result().code == 0


@pytest.mark.rule("C-220", "T31")
def test_no_cloud_library_is_loaded_before_it_is_needed(place: Place) -> None:
    """The command never loads any; the daemon with its first question to Azure."""
    script = (
        "import sys\nfrom aj.cli import app\ncode = app.run(sys.argv[1:])\n"
        f"sys.exit(code or sorted({{name.partition('.')[0] for name in sys.modules}} & set({CLOUDY!r})) or 0)"
    )

    def run(*words: str) -> None:
        env = {**place.shell.home.env, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        command = [sys.executable, "-c", script, *words]
        ran = subprocess.run(command, env=env, cwd=place.shell.directory, capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, "no jobs\n" if words == ("job", "list") else "")

    def loaded() -> bool:
        hello = json.loads(place("daemon", "status", "--json").out)["item"]
        maps = Path(f"/proc/{hello['pid']}/maps").read_text()
        return "cryptography" in maps

    run("job", "list")
    assert not loaded()
    run("auth", "status", "-o", "jsonl")
    assert loaded()
    supply(place.azure)
    run("quota", "list", "-q")
