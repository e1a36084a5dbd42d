"""aj watch and --notify: each change once, by every way, across restarts, and no secret in what is told."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from aj.base import proc
from aj.base.clock import SYSTEM
from tests.cli.conftest import Shell
from tests.conftest import Home

pytestmark = pytest.mark.rule("C-034")
LIMIT_S = 60.0


def until(look: Callable[[], object]) -> None:
    """Wait for something to be true, with a limit."""
    end = SYSTEM.monotonic() + LIMIT_S
    while not look():
        assert SYSTEM.monotonic() < end, "it never came"
        SYSTEM.sleep(0.05)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def gate(shell: Shell) -> Path:
    """A file whose presence lets the job of the tests end."""
    return shell.directory / "go"


def begin(shell: Shell, *options: str) -> str:
    script = f"until [ -e {gate(shell)} ]; do sleep 0.05; done; exit 3"
    ran = shell("run", *options, "--json", "sh", "-c", script)
    assert ran.code == 0, ran.out
    return str(ran.json["item"]["id"])


@pytest.fixture
def live(live: Shell) -> Shell:
    live.write("README", "some code\n")
    return live


@pytest.fixture
def hook(loopback: None) -> Iterator[tuple[str, list[dict]]]:
    got: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/services/T0/hunter2", got
    server.shutdown()
    server.server_close()


@pytest.mark.rule("C-217", "C-336")
def test_a_job_is_watched_by_any_of_its_names_and_each_change_is_told_once(
    live: Shell, hook: tuple[str, list[dict]]
) -> None:
    url, got = hook
    out = live.directory / "told"
    job = begin(live)
    until(lambda: live("status", job, "--json").json["item"]["workload"]["state"] == "running")
    added = live("watch", "add", f"q-{job}", "--notify", f"webhook:{url}", "--notify", f"cmd:cat >>{out}")
    assert added.rows[0][:2] == [job, "ok"]
    assert live("watch", "add", job, "--notify", f"webhook:{url}").rows[0][1] == "noop"
    until(lambda: live("watch", "list", "--json").json["items"][0]["state"] == "running")
    row = live("watch", "list", "--json").json["items"][0]
    assert (row["ways"], row["is_over"]) == (["webhook:127.0.0.1", "cmd:cat"], False)
    live("daemon", "restart", "--force")
    gate(live).touch()
    until(lambda: live("watch", "list", "--json").json["items"][0]["delivery"] == "sent")
    assert [(one["before"], one["state"], one["final"]) for one in lines(out)] == [("running", "errored", True)]
    assert [one["state"] for one in got] == ["errored"]
    assert "hunter2" not in live("daemon", "logs").out + live("watch", "list", "-o", "yaml").out
    name = row["name"]
    assert live("watch", "remove", name).rows[0][:2] == [job, "ok"]
    again = live("watch", "remove", job)
    assert (again.code, again.rows[0][1], again.err) == (0, "noop", f"{job} was not watched\n")
    assert live("watch", "list").err == "no watches\n"


def test_the_end_of_a_short_job_is_not_missed(live: Shell) -> None:
    out = live.directory / "told"
    ran = live("run", "--json", "--notify", f"cmd:cat >>{out}", "--wait", "true")
    assert ran.code == 0
    until(lambda: lines(out) and lines(out)[-1]["final"])
    assert lines(out)[-1]["state"] == "completed"
    assert lines(out)[-1]["id"] == ran.json["item"]["id"]


def test_a_watch_goes_with_a_submission_that_fails(live: Shell) -> None:
    live.template("big", "base:\nconfig: {target: {service: local, gpus: 99}, jobs: [{instance_count: 1}]}\n")
    assert live("run", "-t", "big", "--notify", "desktop", "true").code == 5
    assert live("watch", "list").err == "no watches\n"


@pytest.mark.parametrize(
    "word",
    [
        "mail:x",
        "webhook:ftp://x",
        "cmd:",
        "",
        "webhook:",
        "webhook:https://u:hunter2@h/",
        "webhook:https://h:99999/hunter2",
    ],
)
def test_a_way_that_is_none_is_refused_before_anything_is_submitted(aj: Shell, word: str) -> None:
    ran = aj("run", "-t", "local", "--notify", word, "true")
    assert (ran.code, "`--notify`" in ran.err, "hunter2" in ran.err) == (2, True, False)


def test_a_command_sees_the_change_and_no_secret(live: Shell) -> None:
    out = live.directory / "env"
    secret = {"AZURE_CLIENT_SECRET": "hunter2", "MY_API_TOKEN": "hunter2"}
    shell = Shell(live.home.having(**secret), live.directory)
    shell("daemon", "restart")
    shell("run", "-e", "PASSWORD=hunter2", "--notify", f"cmd:env >>{out}", "--wait", "true")
    until(lambda: out.exists() and "AJ_WATCH_STATE=completed" in out.read_text())
    assert "hunter2" not in out.read_text()
    assert f"PWD={live.directory}" in out.read_text()


def test_a_way_that_fails_is_told_and_stops_nothing(live: Shell) -> None:
    out = live.directory / "told"
    live("run", "--notify", "cmd:echo broken >&2; exit 3", "--notify", f"cmd:cat >>{out}", "--wait", "true")
    until(lambda: lines(out) and lines(out)[-1]["final"])
    until(lambda: live("watch", "list", "--json").json["items"][0]["delivery"] == "failed")
    assert "cmd:echo ended with exit code 3: broken" in live("daemon", "logs").out


def test_listen_prints_a_line_a_change_of_this_project_alone(live: Shell, home: Home) -> None:
    other = Shell(live.home, home.project("other").root)
    other.write("README", "some code\n")
    other.template("local", "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n")
    for shell in (live, other):
        begin(shell, "-t", "local", "--notify", "cmd:true")
    heard: list = []
    words = ("watch", "listen", "--json", "--timeout", "6s")
    thread = threading.Thread(target=lambda: heard.append(live.home.aj(*words, cwd=live.directory)))
    thread.start()
    until(lambda: live("daemon", "status", "--json").json["item"]["busy"]["requests"] == 1)  # it listens
    gate(live).touch()
    gate(other).touch()
    thread.join()
    (ran,) = heard
    assert ran.code == 124, ran.err
    told = [one for line in ran.out.decode().splitlines() if (one := json.loads(line)).get("type") == "state"]
    assert {one["project"] for one in told} == {live.home.project().key}
    assert [one["state"] for one in told if one["final"]] == ["errored"]


@pytest.mark.rule("WA-08")
def test_two_daemons_over_one_state_folder_tell_an_end_once(live: Shell) -> None:
    out = live.directory / "told"
    job = begin(live, "--notify", f"cmd:cat >>{out}")
    until(lambda: live("watch", "list", "--json").json["items"][0]["state"] == "running")
    other = Shell(live.home.having(AJ_RUNTIME_DIR=str(live.home.folders.runtime) + "-2"), live.directory)
    try:
        assert other("daemon", "start").code == 0
        refused = other("watch", "add", job, "--json")
        assert refused.json["error"]["code"] == "lock-held"
        assert f"`AJ_RUNTIME_DIR={live.home.folders.runtime} aj daemon stop`" in refused.json["error"]["hint"]
        gate(live).touch()
        until(lambda: lines(out) and lines(out)[-1]["final"])
        until(lambda: live("watch", "list", "--json").json["items"][0]["delivery"] == "sent")
    finally:
        other("daemon", "stop", "--force")
    assert [one["state"] for one in lines(out) if one["final"]] == ["errored"]


@pytest.mark.rule("WA-09")
def test_a_notice_that_was_on_its_way_when_the_daemon_was_killed_is_unsure_in_the_list(live: Shell) -> None:
    began = live.directory / "began"
    job = begin(live, "--notify", f'cmd:[ "$AJ_WATCH_FINAL" = false ] || {{ touch {began}; exec sleep 25; }}')
    gate(live).touch()
    until(began.exists)
    item = live("daemon", "status", "--json").json["item"]
    who = proc.identity(item["pid"])
    assert proc.send(who, signal.SIGKILL) and proc.wait_gone(who, 10)
    assert live("watch", "list", "--json").json["items"][0]["delivery"] == "unsure"
    live("daemon", "start")
    (row,) = live("watch", "list", "--json").json["items"]
    assert (row["id"], row["delivery"]) == (job, "unsure")


@pytest.mark.rule("WA-02", "WA-05")
def test_a_hook_that_never_answers_delays_no_other_way_and_not_the_end_of_the_daemon(
    live: Shell, loopback: None
) -> None:
    out = live.directory / "told"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"webhook:http://127.0.0.1:{silent.getsockname()[1]}/x"
        begin(live, "--notify", address, "--notify", f"cmd:cat >>{out}")
        gate(live).touch()
        until(lambda: lines(out) and lines(out)[-1]["final"])
        pid = live("daemon", "status", "--json").json["item"]["pid"]
        started = SYSTEM.monotonic()
        stopped = live("daemon", "stop")
        assert (stopped.code, "submission" in stopped.err) == (0, False)
        assert SYSTEM.monotonic() - started < 10
    assert not Path(f"/proc/{pid}").exists()
    assert live("watch", "list", "--json").json["items"][0]["delivery"] == "unsure"
