"""Ctrl-C: the command ends at once, what was promised goes on, and nobody invents an outcome."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from aj.base import paths, proc
from aj.base.paths import Project
from aj.store import journal, tickets
from tests.cli.conftest import Shell
from tests.conftest import RunningDaemon


@pytest.fixture
def live(aj: Shell, daemon: RunningDaemon) -> Shell:
    aj.template("local", "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n")
    aj.write("long.sh", "echo ready; exec sleep 100\n")
    return Shell(aj.home.having(PATH=f"{sys.prefix}/bin:/usr/bin:/bin"), aj.directory)


def begin(shell: Shell, *words: str, both: bool = False) -> subprocess.Popen[bytes]:
    """Start a command; with `both` stdout and stderr are one stream."""
    argv = [*paths.program(), *words]
    env = dict(shell.home.env)
    err = subprocess.STDOUT if both else subprocess.PIPE
    return subprocess.Popen(argv, env=env, cwd=shell.directory, stdout=subprocess.PIPE, stderr=err)


def interrupted(child: subprocess.Popen[bytes]) -> tuple[int, str, float]:
    """Press Ctrl-C; return exit code, stderr and how long the end took."""
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    return child.returncode, err.decode(), time.monotonic() - begun


def until(happens: Callable[[], bool], limit_s: float = 30) -> None:
    limit = time.monotonic() + limit_s
    while not happens():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.02)


@pytest.mark.rule("C-079", "C-077", "T69")
def test_leaving_a_job_that_is_followed(live: Shell) -> None:
    with begin(live, "run", "-t", "local", "--follow", "long.sh") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        code, err, took_s = interrupted(child)
    assert (code, took_s < 5) == (130, True)
    aj_id = next(line for line in err.splitlines() if " goes on without this command" in line).split()[1]
    assert f"job {aj_id} (ticket q-{aj_id}) goes on" in err
    assert f"`aj status {aj_id}`, `aj terminate {aj_id}`" in err
    assert live("status", aj_id, "--json").json["item"]["workload"]["state"] == "running"
    with begin(live, "logs", aj_id, "-f") as again:
        assert again.stdout is not None
        assert again.stdout.readline() == b"ready\n"
        code, err, _ = interrupted(again)
        assert (code, err.splitlines()) == (130, [f"{aj_id} goes on without this command: `aj terminate` ends a job"])
    assert live("terminate", aj_id, "--grace", "1s", "--wait").code == 0


@pytest.mark.rule("C-277", "C-079")
def test_leaving_before_anything_was_confirmed(live: Shell, project: Project, daemon: RunningDaemon) -> None:
    """The daemon is held, so the submission is on its way and no answer comes."""
    who = _held(daemon)
    with begin(live, "run", "-t", "local", "true") as child:
        until(lambda: _is_talking(child.pid))
        code, err, took_s = interrupted(child)
    proc.send(who, signal.SIGCONT)
    assert (code, took_s < 5) == (130, True)
    told = [line for line in err.splitlines() if line.startswith("interrupted; not confirmed")]
    assert (len(told), "Traceback" in err) == (1, False)
    ticket = told[0].rpartition("`aj queue show ")[2].removesuffix("`")
    # whatever the daemon made of it, the journal and the ticket say the same, and nobody else wrote there
    live("daemon", "stop")
    found = [one for one in tickets.scan(live.home.layout, project.key).tickets if one.ticket == ticket]
    records = journal.read(live.home.layout, project.key, lambda _: None)
    assert [one.state.value for one in found] in ([], ["completed"])
    assert [(one.ticket, one.state.value) for one in records] == [(one.ticket, "submitted") for one in found]


@pytest.mark.rule("C-079")
def test_leaving_a_submission_that_was_accepted(live: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from aj.client.submissions import Submissions

    def leave(self: Submissions, *told: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(Submissions, "follow", leave)
    seen = live("run", "-t", "local", "true")
    assert seen.code == 130
    ticket = seen.err.splitlines()[-1].split()[0]
    assert seen.err.endswith(
        f"{ticket} goes on without this command: `aj queue show {ticket}`, `aj queue cancel {ticket}`\n"
    )
    assert live("queue", "wait", ticket).code == 0


def _held(daemon: RunningDaemon) -> proc.Identity:
    daemon.start()
    who = daemon.who
    assert who is not None
    assert proc.send(who, signal.SIGSTOP)
    return who


def _is_talking(pid: int) -> bool:
    """Whether a process has a Unix socket open: it has dialled."""
    import os

    try:
        return any(
            os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:") for name in os.listdir(f"/proc/{pid}/fd")
        )
    except OSError:
        return False


@pytest.mark.rule("C-073", "C-296", "C-249")
def test_an_unknown_outcome_and_how_to_find_out(live: Shell, project: Project) -> None:
    from tests.cli import seed

    seed.write_tickets(live.home, project.key, seed.ticket("0000000a", **seed.LOST), path=str(project.directory))
    retried = live("queue", "retry", "q-0000000a", "--json")
    assert (retried.code, retried.json["error"]["type"]) == (6, "OutcomeUnknown")
    assert "aj queue reconcile" in retried.err
    seen = live("queue", "reconcile", "--json")
    assert seen.code == 6
    assert seen.json["error"]["type"] == "OutcomeUnknown"


@pytest.mark.rule("C-079", "C-077")
def test_leaving_a_job_that_is_waited_for(live: Shell) -> None:
    with begin(live, "run", "-t", "local", "--wait", "--json", "long.sh") as child:
        assert child.stderr is not None
        for line in child.stderr:
            if b"  running" in line:
                break
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=20)
    item = json.loads(out)["item"]
    aj_id = item["id"]
    assert (child.returncode, item["status"], item["job"]) == (143, "submitted", None)
    assert f"job {aj_id} (ticket q-{aj_id}) goes on without this command" in err.decode()
    with begin(live, "wait", aj_id) as child:
        assert child.stdout is not None
        child.stdout.readline()
        code, told, _ = interrupted(child)
    assert (code, told) == (130, f"{aj_id} goes on without this command: `aj terminate` ends a job\n")
    live("terminate", aj_id, "--grace", "1s", "--wait")
