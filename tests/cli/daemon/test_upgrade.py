"""aj daemon restart and upgrade: jobs go on, are waited for, or run again; none is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM
from tests.cli.conftest import Shell

LIMIT_S = 20
# Says that it runs, and ends when it is allowed to.
UNTIL = "echo $$ >> {ran}; while ! [ -e {go} ]; do sleep 0.05; done; echo over"


@pytest.fixture
def files(live: Shell, tmp_path: Path) -> tuple[Path, Path]:
    live.write("README", "some code\n")
    return tmp_path / "ran", tmp_path / "go"


def begin(live: Shell, files: tuple[Path, Path], starts: int = 1) -> str:
    """Submit a job that runs until it may end, and wait until it does."""
    ran, go = files
    job = str(live("run", "--json", "sh", "-c", UNTIL.format(ran=ran, go=go)).json["item"]["id"])
    wait_for_starts(ran, starts)
    return job


def wait_for_starts(ran: Path, count: int) -> None:
    limit = SYSTEM.monotonic() + LIMIT_S
    while not ran.exists() or len(ran.read_text().split()) < count:
        assert SYSTEM.monotonic() < limit
        threading.Event().wait(0.02)


def one_that_waits(live: Shell) -> str:
    """Submit jobs until one of them has to wait for the upgrade; return it."""
    limit = SYSTEM.monotonic() + LIMIT_S
    while True:
        job = str(live("run", "--json", "true").json["item"]["id"])
        while (found := live("status", job, "--json").json["item"]["workload"])["state"] != "completed":
            if found["waitingFor"] == "the upgrade of the daemon":
                return job
            assert SYSTEM.monotonic() < limit


@pytest.mark.rule("C-225", "C-222")
def test_a_running_job_goes_on_over_a_restart(live: Shell, files: tuple[Path, Path]) -> None:
    job = begin(live, files)
    seen = live("daemon", "restart")
    assert (seen.code, seen.out) == (0, "started\n")
    assert "1 running job goes on; this daemon watches over them now" in seen.err
    shown = live("status", job, "--json").json
    assert shown["item"]["workload"]["state"] == "running", shown
    files[1].touch()
    assert live("wait", job).code == 0
    assert len(files[0].read_text().split()) == 1


@pytest.mark.rule("UP-01", "UP-02", "C-050")
def test_an_upgrade_waits_for_what_runs_and_starts_nothing_meanwhile(live: Shell, files: tuple[Path, Path]) -> None:
    job = begin(live, files)
    before = live("daemon", "status", "--json").json["item"]["pid"]
    found = []
    upgrade = threading.Thread(target=lambda: found.append(live("daemon", "upgrade", "--json")))
    upgrade.start()
    second = one_that_waits(live)
    assert upgrade.is_alive()
    files[1].touch()
    upgrade.join(LIMIT_S)
    assert (found[0].code, found[0].json["action"], found[0].json["status"]) == (0, "upgrade", "ok")
    assert "to wait for" in found[0].err  # one, or two when a quick one ran just then
    assert found[0].json["items"][0]["pid"] != before
    assert live("wait", job, second).code == 0
    assert len(files[0].read_text().split()) == 1


@pytest.mark.rule("UP-03", "C-050", "C-004")
def test_a_forced_upgrade_stops_the_jobs_and_they_run_again(live: Shell, files: tuple[Path, Path]) -> None:
    job = begin(live, files)
    seen = live("api", "upgrade", "--force")
    assert (seen.code, seen.out) == (0, "started\n")
    wait_for_starts(files[0], 2)
    files[1].touch()
    assert live("wait", job).code == 0
    states = [event["state"] for event in live("status", job, "--json").json["item"]["events"]]
    assert states.count("recovering") == 1
    assert states[-1] == "completed"


@pytest.mark.rule("C-050")
def test_an_upgrade_of_none_starts_one(live: Shell) -> None:
    assert live("daemon", "upgrade").out == "started\n"
    assert live("daemon", "status").code == 0
