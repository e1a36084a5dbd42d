"""aj doctor: each fault is found where it is, named with what mends it, and hides no other."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from aj.base import paths, proc
from aj.client import checkup
from aj.model.ticket import Outcome, TicketState
from tests.cli import seed
from tests.cli.conftest import Shell
from tests.conftest import RunningDaemon

pytestmark = [pytest.mark.rule("C-051b"), pytest.mark.usefixtures("programs", "real_clock")]


def faults(shell: Shell, code: int, **variables: str) -> dict[str, dict[str, Any]]:
    """What is not as it should be, by check."""
    ran = shell("doctor", "--json", PATH="/usr/bin:/bin", **variables)
    assert ran.code == code, ran.out
    return {one["check"]: one for one in ran.json["items"] if not one["ok"]}


def test_a_sound_machine_has_nothing_to_mend(aj: Shell) -> None:
    assert faults(aj, 0) == {}
    ran = aj("doctor", PATH="/usr/bin:/bin")
    assert ran.err == "nothing to mend\n"
    assert [row[0] for row in ran.rows][:10] == [
        *("project", "settings", "variables", "state folder", "disk", "locks", "clock", "daemon", "queue"),
        "damaged files",
    ]


def test_it_changes_nothing_and_starts_no_daemon(aj: Shell) -> None:
    aj.home.layout.state.mkdir(parents=True, mode=0o700)
    faults(aj, 0)
    assert sorted(path.name for path in aj.home.layout.state.rglob("*") if path.is_file()) == []


def test_settings_are_told_with_file_and_line(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", 'outptu = "json"\ntimezone = "Mars/Phobos"\n')
    ran = aj("doctor", "--json", PATH="/usr/bin:/bin", AJ_OUTPTU="1")
    assert ran.code == 1
    told = [one for one in ran.json["items"] if one["check"] == "settings"]
    assert [one["verdict"] for one in told] == ["failed", "warning"]
    assert "aj.toml:2" in told[0]["message"] and "timezone" in told[0]["message"]
    assert "aj.toml:1" in told[1]["message"] and "`output`" in told[1]["hint"]
    assert told[0]["hint"] == "`aj config unset timezone`"
    (told,) = [one for one in ran.json["items"] if one["check"] == "variables"]
    assert told["verdict"] == "warning" and "AJ_OUTPTU" in told["message"]


@pytest.mark.rule("C-05A")
@pytest.mark.parametrize("words", [("doctor",), ("-v", "doctor"), ("doctor", "-o", "yaml")])
def test_files_that_are_no_toml_hide_no_other_check(aj: Shell, words: tuple[str, ...]) -> None:
    project = aj.write(".azure_jobs/aj.toml", "template =\n")
    user = aj.home.layout.user_settings
    user.parent.mkdir(parents=True)
    user.write_bytes(b'color = "never"\nx = "\xff"\n')
    aj.home.layout.state.mkdir(parents=True, mode=0o755)
    found = faults(aj, 1)
    assert set(found) == {"settings", "state folder"}
    assert found["state folder"]["hint"] == f"`chmod 700 {aj.home.layout.state}`"
    ran = aj(*words, PATH="/usr/bin:/bin")
    assert ran.code == 1
    assert f"{project}:1:11: not TOML: invalid value" in ran.out and f"mend {project}:1:11" in ran.out
    assert f"{user}:2:6: not UTF-8" in ran.out


@pytest.mark.rule("C-05A")
def test_the_error_of_another_command_names_the_file_and_the_way_to_all_faults(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", "template =\n")
    ran = aj("list")
    file = aj.directory / ".azure_jobs" / "aj.toml"
    assert ran.code == 2
    assert ran.err.splitlines()[1] == (
        f"hint: mend {file}:1:11, or move the file away; `aj doctor` tells all that is wrong"
    )


@pytest.mark.rule("C-05A")
@pytest.mark.parametrize(
    ("variables", "check"),
    [
        ({"AJ_OUTPUT": "xml"}, "settings"),
        ({"AJ_DAEMON_IDLE": "soon"}, "settings"),
        ({"AJ_DEBUG": "perhaps"}, "variables"),
        ({"AJ_NO_INPUT": "2"}, "variables"),
        ({"AJ_LOG_LEVEL": "loud"}, "variables"),
        ({"AJ_CREDENTIAL": "luck"}, "variables"),
        ({"AJ_AMLT_TIMEOUT": "x"}, "variables"),
    ],
)
def test_a_variable_that_cannot_be_read_is_a_finding(aj: Shell, variables: dict[str, str], check: str) -> None:
    ran = aj("doctor", "-o", "json", PATH="/usr/bin:/bin", **variables)
    assert ran.code == 1
    found = [one for one in ran.json["items"] if not one["ok"]]
    (name,) = variables
    assert [(one["check"], name in str(one)) for one in found] == [(check, True)] and found[0]["hint"]
    assert "damaged files" in ran.out


@pytest.mark.rule("C-05A")
def test_folders_that_are_not_absolute_are_told_all_at_once(aj: Shell) -> None:
    ran = aj.home.aj("doctor", "-o", "json", PATH="/usr/bin:/bin", AJ_STATE_DIR="a", AJ_CACHE_DIR="b")
    found = [one["message"] for one in json.loads(ran.out)["items"] if one["check"] == "variables" and not one["ok"]]
    assert ran.code == 1 and len(found) == 2
    assert all("is not an absolute path; the default is looked at" in words for words in found)


@pytest.mark.rule("C-05A")
def test_a_state_that_is_damaged_all_over_is_told_file_by_file(aj: Shell) -> None:
    layout, key = aj.home.layout, aj.home.project().key
    for path in (
        layout.ticket(key, "q-0a1b2c3d"),
        layout.journal(key),
        layout.job("0a1b2c3d") / "record.json",
        layout.deployments / "web" / "record.json",
        layout.watches / key / "0a1b2c3d.json",
        layout.credentials / "disk.json",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"[" * 50_000 + b"\n")
    layout.state.chmod(0o700)
    ran = aj("doctor", "--json", PATH="/usr/bin:/bin")
    told = [one["message"] for one in ran.json["items"] if one["check"] == "damaged files"]
    for name in ("q-0a1b2c3d.json", f"{key}.jsonl:1", "jobs/0a1b2c3d/record.json", "web/record.json", "disk.json"):
        assert any(name in words for words in told), name
    assert [one["check"] for one in ran.json["items"]][-1] == "certificates"


@pytest.mark.rule("C-05A")
def test_what_nobody_expected_is_a_finding_too(aj: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(layout: object) -> list[str]:
        raise KeyError("tickets")

    def shut(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(aj.home.layout.state))

    monkeypatch.setattr(checkup.tickets, "keys", broken)
    monkeypatch.setattr(os, "statvfs", shut)
    found = faults(aj, 1)
    assert "KeyError" in found["queue"]["message"]
    assert found["disk"]["message"].endswith("Permission denied") and "ls -ld" in found["disk"]["hint"]


@pytest.mark.rule("C-05A")
def test_no_home_no_folder_and_no_state(aj: Shell, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    env = {key: value for key, value in aj.home.env.items() if key != "HOME"} | {"PATH": "/usr/bin:/bin"}
    aj.home.layout.state.parent.mkdir(parents=True)
    aj.home.layout.state.write_text("a file\n")
    ran = proc.run(["sh", "-c", script, "sh", *paths.program(), "doctor", "--json"], env=env, timeout_s=60)
    told = {one["check"]: one for one in json.loads(ran.out)["items"] if not one["ok"]}
    assert ran.code == 1
    assert "is not there any more" in told["project"]["message"] and told["project"]["hint"] == "`cd` elsewhere"
    assert "is no folder" in told["state folder"]["message"]


@pytest.mark.rule("C-05A")
def test_a_project_that_is_a_file(outside: Shell) -> None:
    outside.write(".azure_jobs", "")
    found = faults(outside, 1)
    assert set(found) == {"project"} and "is a file" in found["project"]["message"]


def test_a_full_disk_and_a_clock_that_is_wrong(aj: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs("/")
    monkeypatch.setattr(os, "statvfs", lambda folder: os.statvfs_result((*real[:4], 10, *real[5:])))
    monkeypatch.setattr(checkup, "FIRST_RELEASE", 1e11)
    found = faults(aj, 1)
    assert (found["disk"]["verdict"], found["clock"]["verdict"]) == ("failed", "failed")


def test_unknown_outcomes_and_damaged_files(aj: Shell) -> None:
    key = aj.home.project().key
    one = seed.ticket("0a1b2c3d", state=TicketState.FAILED, outcome=Outcome.UNKNOWN)
    seed.write_tickets(aj.home, key, one)
    (aj.home.layout.state / "jobs").mkdir(parents=True, exist_ok=True)
    (aj.home.layout.state / "jobs" / "record.json.damaged-1").write_text("?")
    found = faults(aj, 0)
    assert "q-0a1b2c3d" in found["queue"]["message"] and found["queue"]["hint"] == "`aj queue reconcile`"
    assert found["damaged files"]["message"].startswith("1 file set aside")


@pytest.mark.parametrize(
    ("variables", "check", "words"),
    [
        ({"HTTPS_PROXY": "ftp://x"}, "proxy", "names no proxy"),
        ({"HTTPS_PROXY": "http://u:pw@badhost:99999"}, "proxy", "HTTPS_PROXY names no proxy"),
        ({"SSL_CERT_FILE": "/nowhere.pem"}, "certificates", "No such file"),
        ({"AZURE_CLIENT_SECRET": "hunter2"}, "azure sign-in", "AZURE_CLIENT_ID and AZURE_TENANT_ID"),
        ({"KUBECONFIG": "/nowhere"}, "kubeconfig", "no such file"),
        ({"AJ_HOME": "/nowhere"}, "project", "is not there"),
    ],
)
def test_variables_that_lead_nowhere(aj: Shell, variables: dict[str, str], check: str, words: str) -> None:
    found = faults(aj, 1, **variables)
    assert set(found) == {check}
    assert words in found[check]["message"] and found[check]["hint"]
    assert "hunter2" not in str(found)


def test_a_kubeconfig_is_read_for_its_faults(aj: Shell, tmp_path: Path) -> None:
    file = tmp_path / "config"
    for text, mode, words in (
        ("contexts: [{name: a}]\ncurrent-context: b\n", 0o600, "current context b is not among a"),
        ("contexts: [{name: a}]\ncurrent-context: a\n", 0o644, "open to other users"),
        ("a: [\n", 0o600, f"{file}:2:1"),
    ):
        file.write_text(text)
        file.chmod(mode)
        ran = aj("doctor", "--json", PATH="/usr/bin:/bin", KUBECONFIG=str(file))
        (told,) = [one["message"] for one in ran.json["items"] if one["check"] == "kubeconfig"]
        assert words in told


def test_programs_are_asked_and_a_broken_one_is_told(aj: Shell, tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "az"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no python >&2\nexit 3\n")
    broken.chmod(0o755)
    ran = aj("doctor", "--json", PATH=f"{broken.parent}:/usr/bin:/bin")
    told = {one["check"]: one for one in ran.json["items"]}
    assert told["git"]["verdict"] == "ok" and "git version" in told["git"]["message"]
    assert (told["az"]["verdict"], "exit code 3: no python" in told["az"]["message"]) == ("failed", True)
    assert told["amlt"]["verdict"] == "absent"


def test_a_daemon_with_other_variables_is_told(live: Shell, daemon: RunningDaemon) -> None:
    live("daemon", "start")
    found = faults(live, 0, AZURE_CLIENT_ID="other", KUBECONFIG="")
    assert "AZURE_CLIENT_ID" in found["daemon"]["message"] and found["daemon"]["hint"] == "`aj daemon restart`"
    ran = live("doctor", "--json", PATH="/usr/bin:/bin")
    (told,) = [one for one in ran.json["items"] if one["check"] == "daemon"]
    assert told["message"].startswith("running, version")
