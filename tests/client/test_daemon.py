"""The daemon as a noun: status, stop and restart, also of one that hangs or works."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from pathlib import Path

import pytest

from aj.base import proc
from aj.base.errors import DaemonError, TimedOut
from aj.client import daemon as daemons
from aj.client.launch import Telling
from aj.model.ticket import Mode, TicketState
from aj.store.runtime import Place
from aj.wire import paths
from aj.wire.daemon import Presence
from tests.conftest import RunningDaemon
from tests.daemon.small import spec

LIMIT_S = 10


@pytest.mark.rule("C-225", "C-222", "C-283")
def test_none_runs(small: RunningDaemon) -> None:
    client = small.client()
    assert client.daemon.status().presence is Presence.STOPPED
    assert client.daemon.stop().status == "noop"
    assert not small.home.folders.runtime.exists() and not small.home.folders.state.exists()


@pytest.mark.rule("C-203", "C-283")
def test_what_a_killed_one_left_is_swept_by_a_stop(small: RunningDaemon) -> None:
    small.start()
    small.kill()
    client = small.client()
    assert client.daemon.status().presence is Presence.STOPPED
    stopped = client.daemon.stop()
    assert (stopped.status, stopped.swept) == ("noop", True)
    assert not Place(small.home.layout).socket.exists()
    assert client.daemon.status().presence is Presence.STOPPED


@pytest.mark.rule("C-206", "C-225")
def test_status_tells_all_of_a_running_one(small: RunningDaemon) -> None:
    assert small.client(KUBECONFIG="/k").daemon.start().status == "ok"
    client = small.client()
    assert client.daemon.start().status == "noop"
    status = client.daemon.status()
    assert status.presence is Presence.RUNNING and status.hello is not None
    assert status.pid == status.hello.pid == small.who.pid  # type: ignore[union-attr]
    assert status.hello.env["KUBECONFIG"] == "/k"
    assert status.drift == ("KUBECONFIG",)
    assert status.log == small.home.layout.daemon_log
    assert status.hello.uptime_s >= 0
    assert client.daemon.health().oldest_queued_s is None


@pytest.mark.rule("C-222")
def test_a_stop_waits_for_what_runs_and_says_so(
    small: RunningDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "TELL_S", 0.1)
    told: queue.Queue[str] = queue.Queue()
    client = small.client(telling=Telling(waiting=told.put))
    client.submissions.submit(spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT)
    client.submissions.submit(spec("1" * 8, "queued"), Mode.QUEUED)
    who = small.who
    assert who is not None
    stops = []
    stopping = threading.Thread(target=lambda: stops.append(client.daemon.stop()))
    stopping.start()
    other = small.client()
    while not other._line.hello().retiring:
        other.close()
    assert other.queue.show("q-00000000").ticket.state is TicketState.RUNNING, "reads are answered meanwhile"
    with pytest.raises(DaemonError) as error:
        other.submissions.submit(spec("2" * 8, "ok"), Mode.DIRECT)
    assert error.value.code == "retiring"
    assert "finishes the running submission" in told.get(timeout=LIMIT_S)
    assert proc.is_alive(who) and stops == []
    (tmp_path / "go").touch()
    stopping.join(LIMIT_S)
    assert stops[0].status == "ok" and not stops[0].killed
    assert not proc.is_alive(who)
    states = {ticket.id: ticket.state for ticket in other.queue.list().tickets}
    assert states == {"0" * 8: TicketState.COMPLETED, "1" * 8: TicketState.QUEUED}


@pytest.mark.rule("WA-05")
def test_one_that_hangs_while_it_leaves_is_seen_and_no_submission_is_blamed(
    small: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "TELL_S", 0.1)
    small.start()
    who = small.who
    assert who is not None
    hang = small.home.folders.state / "small" / "hang"
    hang.touch()
    told: queue.Queue[str] = queue.Queue()
    client = small.client(telling=Telling(waiting=told.put))
    with pytest.raises(TimedOut, match="is leaving"):
        client.daemon.stop(timeout_s=0.5)
    assert told.get(timeout=LIMIT_S) == f"process {who.pid} is leaving"
    while (status := client.daemon.status()).presence is Presence.RUNNING:
        pass
    assert (status.presence, status.pid) == (Presence.LEAVING, who.pid)
    with pytest.raises(TimedOut):
        client.daemon.stop(timeout_s=0.2)
    hang.unlink()
    assert proc.wait_gone(who, LIMIT_S)
    assert client.daemon.status().presence is Presence.STOPPED


@pytest.mark.rule("C-223", "C-076")
def test_a_stop_with_a_time_leaves_what_runs(small: RunningDaemon, tmp_path: Path) -> None:
    client = small.client()
    client.submissions.submit(spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT)
    who = small.who
    assert who is not None
    with pytest.raises(TimedOut) as error:
        client.daemon.stop(timeout_s=0.2)
    assert error.value.exit_code == 124 and error.value.hint == "`aj daemon stop --force`"
    assert proc.is_alive(who)
    (tmp_path / "go").touch()
    assert proc.wait_gone(who, LIMIT_S), "it leaves when its work is done"


@pytest.mark.rule("C-223")
def test_a_forced_stop_does_not_wait(small: RunningDaemon, tmp_path: Path) -> None:
    client = small.client()
    client.submissions.submit(spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT)
    begun = time.monotonic()
    assert client.daemon.stop(force=True).status == "ok"
    assert time.monotonic() - begun < 5
    assert small.who is None
    assert client.queue.show("q-00000000").ticket.state is TicketState.RUNNING


@pytest.mark.rule("C-226")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_a_stop(small: RunningDaemon, number: signal.Signals, tmp_path: Path) -> None:
    client = small.client()
    client.submissions.submit(spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT)
    who = small.who
    assert who is not None
    os.kill(who.pid, number)
    while not client._line.hello().retiring:
        client.close()
    assert proc.is_alive(who)
    (tmp_path / "go").touch()
    assert proc.wait_gone(who, LIMIT_S)
    assert small.who is None


@pytest.mark.rule("C-226")
def test_a_second_signal_is_a_forced_stop(small: RunningDaemon, tmp_path: Path) -> None:
    client = small.client()
    client.submissions.submit(spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT)
    who = small.who
    assert who is not None
    os.kill(who.pid, signal.SIGTERM)
    while not client._line.hello().retiring:
        client.close()
    os.kill(who.pid, signal.SIGTERM)
    assert proc.wait_gone(who, LIMIT_S)


@pytest.fixture
def hasty_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits for one that hangs, shortened; their real values have a test of their own."""
    monkeypatch.setattr(paths, "ADMIN_S", 0.3)
    monkeypatch.setattr(daemons, "GRACE_S", 0.3)


@pytest.fixture
def hung(small: RunningDaemon, hasty_limits: None) -> proc.Identity:
    """A daemon that was stopped in the midst of things."""
    small.start()
    who = small.who
    assert who is not None
    os.kill(who.pid, signal.SIGSTOP)
    return who


def test_the_limits_keep_what_was_promised() -> None:
    looking_s = paths.ADMIN_S
    ending_s = daemons.GRACE_S + 1
    assert looking_s < 6
    assert looking_s + ending_s < 12


@pytest.mark.rule("C-224", "C-284")
def test_a_hung_daemon_is_told_by_everyone(small: RunningDaemon, hung: proc.Identity) -> None:
    client = small.client()
    status = client.daemon.status()
    assert (status.presence, status.pid) == (Presence.HUNG, hung.pid)
    with pytest.raises(DaemonError) as error:
        client.queue.list()
    assert error.value.code == "hung" and error.value.hint == "`aj daemon restart`"
    assert str(hung.pid) in error.value.message
    assert proc.is_alive(hung), "nobody but a stop ends it"


@pytest.mark.rule("C-224", "C-284")
def test_a_hung_daemon_is_ended_by_a_stop(small: RunningDaemon, hung: proc.Identity) -> None:
    told: list[str] = []
    stopped = small.client(telling=Telling(waiting=told.append)).daemon.stop()
    assert (stopped.status, stopped.killed, stopped.pid) == ("ok", True, hung.pid)
    assert told and str(hung.pid) in told[0]
    assert "unknown outcome" in stopped.warnings[0]
    assert not proc.is_alive(hung)
    assert not Place(small.home.layout).socket.exists()


@pytest.mark.rule("C-224", "C-284")
def test_a_hung_daemon_is_replaced_by_a_restart(small: RunningDaemon, hung: proc.Identity) -> None:
    started = small.client().daemon.restart()
    assert started.hello.pid != hung.pid
    assert not proc.is_alive(hung)
    assert "unknown outcome" in started.warnings[0]


@pytest.mark.rule("C-225")
def test_a_restart_takes_this_environment_and_what_waited_goes_on(small: RunningDaemon) -> None:
    project = small.home.project("p 5")
    first = small.client(project)
    first.submissions.submit(spec("0" * 8, "queued"), Mode.QUEUED)
    gone = small.home.project("gone")
    small.client(gone).submissions.submit(spec("1" * 8, "queued"), Mode.QUEUED)
    (gone.directory / "template").rmdir()
    gone.directory.rmdir()
    started = small.client(KUBECONFIG="/new").daemon.restart()
    assert started.hello.env["KUBECONFIG"] == "/new"
    assert len(started.warnings) == 1 and str(gone.directory) in started.warnings[0]
    log = small.home.layout.daemon_log.read_text()
    assert log.count("listens at") == 2


@pytest.mark.rule("C-205")
def test_a_stop_meets_one_that_is_just_leaving(small: RunningDaemon, tmp_path: Path) -> None:
    client = small.client()
    client.submissions.submit(spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT)
    who = small.who
    assert who is not None
    stops = []
    threads = [threading.Thread(target=lambda: stops.append(small.client().daemon.stop())) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not client._line.hello().retiring:
        client.close()
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join(LIMIT_S)
    assert [stopped.status for stopped in stops] == ["ok"] * 3 or "noop" in {stopped.status for stopped in stops}
    assert not proc.is_alive(who)
