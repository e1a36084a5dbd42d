"""Find the daemon or start it: one daemon, whoever asks and whatever the last one left."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from aj.base import paths as places
from aj.base import proc
from aj.base.errors import DaemonError
from aj.client import launch, presence
from aj.client.launch import Telling
from aj.model.ticket import Mode
from aj.net.uds import Answer, NotSent, Wire
from aj.store import atomic, lock
from aj.store.runtime import DaemonFile, Place
from aj.version import VERSION
from aj.wire import paths
from aj.wire.daemon import Presence
from tests.conftest import RunningDaemon
from tests.daemon.conftest import SMALL
from tests.daemon.small import spec

LIMIT_S = 10


def is_gone(pid: int) -> bool:
    """Wait until a process has ended; one that ended before this question has."""
    try:
        who = proc.identity(pid)
    except ProcessLookupError:
        return True
    return proc.wait_gone(who, LIMIT_S)


@pytest.mark.rule("C-198", "C-200")
def test_twenty_first_commands_start_one_daemon(small: RunningDaemon) -> None:
    clients = [small.client() for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        found = set(pool.map(lambda client: client._line.hello().instance, clients))
    assert len(found) == 1
    assert len(proc.with_environment("AJ_STATE_DIR", str(small.home.folders.state))) == 1


@pytest.mark.rule("C-200")
def test_a_daemon_is_detached_with_nothing_inherited(small: RunningDaemon) -> None:
    with (small.home.root / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        pid = small.start().pid
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert (int(stat[2]), int(stat[3])) == (pid, pid), "leader of a group and a session of its own"
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    handles = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    log = str(small.home.layout.daemon_log)
    assert handles - {"/dev/null", log, str(Place(small.home.layout).instance_lock)} == {
        name for name in handles if name.startswith(("socket:", "pipe:"))
    }
    mine = {os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.exists()}
    assert not handles & mine - {"/dev/null"}
    assert [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)] == ["/dev/null", log, log]
    assert "Umask:\t0077" in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.rule("C-095")
def test_a_daemon_that_a_job_started_is_no_part_of_the_job(small: RunningDaemon) -> None:
    pid = small.start(AJ_ID="01234567", AJ_WORKDIR="/job", AJ_NODE_RANK="0").pid
    names = {entry.partition(b"=")[0] for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
    assert b"AJ_STATE_DIR" in names
    assert not names & {b"AJ_ID", b"AJ_WORKDIR", b"AJ_NODE_RANK"}


@pytest.mark.rule("C-199")
def test_files_say_who_lives_there(small: RunningDaemon) -> None:
    hello = small.start()
    place = Place(small.home.layout)
    said = place.read()
    assert said is not None
    assert (said.who, said.instance, said.version) == (proc.identity(hello.pid), hello.instance, VERSION)
    assert place.socket.stat().st_mode & 0o777 == 0o600
    assert small.home.layout.daemon_log.stat().st_mode & 0o777 == 0o600


@pytest.mark.rule("C-202", "C-283")
def test_after_a_kill_the_same_command_goes_on(small: RunningDaemon) -> None:
    client = small.client()
    client.submissions.submit(spec("0" * 8, "ok"), Mode.DIRECT, wait=True)
    killed = small.kill()
    assert Place(small.home.layout).socket.exists()
    assert [ticket.id for ticket in client.queue.list().tickets] == ["0" * 8]
    assert small.who not in (None, killed)


@pytest.mark.rule("T42")
def test_T42_a_dead_socket_costs_no_second_try(small: RunningDaemon) -> None:
    small.start()
    small.kill()
    assert small.client().queue.list().tickets == ()


@pytest.mark.rule("T32")
def test_T32_a_start_is_possible_at_once_while_children_of_the_killed_live_on(small: RunningDaemon) -> None:
    script = (
        "import subprocess, sys, runpy; "
        "subprocess.Popen(['sleep', '60'], start_new_session=True, close_fds=True); "
        f"sys.argv[0] = {str(SMALL)!r}; runpy.run_path({str(SMALL)!r}, run_name='__main__')"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "program", lambda: [sys.executable, "-c", script])
        small.start()
    small.kill()
    begun = time.monotonic()
    small.start()
    assert time.monotonic() - begun < 5


@pytest.mark.rule("C-202", "C-285")
def test_a_process_that_has_the_old_number_is_left_alone(small: RunningDaemon) -> None:
    place = Place(small.home.layout)
    small.home.layout.prepare()
    place.prepare()
    with subprocess.Popen(["sleep", "60"], env={}) as other:
        who = proc.Identity(other.pid, "12345", proc.boot_id())
        place.write(DaemonFile(who, VERSION, 1, 1, "old", str(place.socket)))
        left = socket.socket(socket.AF_UNIX)
        left.bind(os.fspath(place.socket))
        os.chmod(place.socket, 0o600)
        left.close()
        client = small.client()
        assert client.daemon.status().presence is Presence.STOPPED
        stopped = client.daemon.stop()
        assert (stopped.status, stopped.swept) == ("noop", True)
        assert not place.socket.exists() and place.read() is None
        place.write(DaemonFile(who, VERSION, 1, 1, "old", str(place.socket)))
        assert small.start().pid != other.pid
        assert client.daemon.stop(force=True).status == "ok"
        assert other.poll() is None
        other.kill()


Foreign = Callable[[socket.socket], object]


@pytest.fixture
def stranger(small: RunningDaemon) -> Callable[[Foreign], None]:
    """Put another program at the socket's path."""

    def listen(act: Foreign) -> None:
        small.home.layout.prepare()
        place = Place(small.home.layout)
        place.prepare()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.fspath(place.socket))
        os.chmod(place.socket, 0o600)
        listener.listen()

        def run() -> None:
            with listener:
                for _ in range(20):
                    line, _ = listener.accept()
                    with line:
                        act(line)

        threading.Thread(target=run, daemon=True).start()

    return listen


ANSWERS: dict[str, Foreign] = {
    "no HTTP": lambda line: line.sendall(b"220 mail.example ESMTP\r\n"),
    "hangs up": lambda line: line.recv(10000),
    "HTTP, no JSON": lambda line: line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    "another JSON": lambda line: line.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"name": "xx"}'),
    "another error": lambda line: line.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}"),
}


@pytest.mark.rule("C-205", "C-286")
@pytest.mark.parametrize("how", ANSWERS)
def test_a_stranger_at_the_socket_is_named_and_left_alone(
    small: RunningDaemon, stranger: Callable[[Foreign], None], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(presence, "AGAIN_S", (0.01, 0.01))
    stranger(ANSWERS[how])
    socket_path = Place(small.home.layout).socket
    client = small.client()
    for act in (client.queue.list, client.daemon.stop, client.daemon.restart):
        with pytest.raises(DaemonError) as error:
            act()
        assert error.value.code == "foreign"
        assert str(socket_path) in error.value.message
    assert client.daemon.status().presence is Presence.FOREIGN
    assert socket_path.exists()
    assert small.who is None


@pytest.mark.rule("C-286")
def test_a_stranger_that_never_answers_is_one_too(
    small: RunningDaemon, stranger: Callable[[Foreign], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ADMIN_S", 0.2)
    go = threading.Event()
    stranger(lambda line: go.wait(LIMIT_S))
    with pytest.raises(DaemonError) as error:
        small.client().queue.list()
    assert error.value.code == "foreign"
    go.set()


@pytest.mark.rule("C-198", "C-288")
def test_a_runtime_folder_that_is_not_private_starts_nothing(small: RunningDaemon) -> None:
    runtime = small.home.folders.runtime
    runtime.mkdir()
    runtime.chmod(0o755)
    client = small.client()
    for act in (client.queue.list, client.daemon.start, client.daemon.status, client.daemon.stop):
        with pytest.raises(DaemonError, match="mode 0755"):
            act()
    assert list(runtime.iterdir()) == []
    assert runtime.stat().st_mode & 0o777 == 0o755


@pytest.mark.rule("C-199", "C-289")
def test_a_runtime_path_of_two_hundred_characters_works(small: RunningDaemon, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100) / ("y" * 100)
    client = small.client(AJ_RUNTIME_DIR=str(long))
    client.submissions.submit(spec("0" * 8, "ok"), Mode.DIRECT, wait=True)
    status = client.daemon.status()
    assert status.hello is not None and status.hello.socket == str(status.socket)
    assert status.socket.parent == Path(f"/tmp/aj-{os.getuid()}")
    assert (long / "daemon.json").exists()
    client.daemon.stop()
    assert not status.socket.exists() and not (long / "daemon.json").exists()


def of_version(version: str, low: int, high: int) -> list[str]:
    """A daemon of another release."""
    script = (
        f"import sys, runpy, aj.version as v; v.VERSION, v.PROTOCOL_MIN, v.PROTOCOL_MAX = {version!r}, {low}, {high}; "
        f"runpy.run_path({str(SMALL)!r}, run_name='__main__')"
    )
    return [sys.executable, "-c", script]


def start_version(small: RunningDaemon, version: str, low: int, high: int) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "program", lambda: of_version(version, low, high))
        launch.place_of(small.home.settings)
        small.home.layout.prepare()
        place = Place(small.home.layout)
        place.prepare()
        with launch.starting(place, Telling()), pytest.MonkeyPatch.context() as trusting:
            trusting.setattr(launch, "_fitting", lambda _, hello: hello)
            return launch.start(place, small.home.settings, Telling()).pid


@pytest.mark.rule("C-204", "C-287")
def test_an_idle_daemon_of_an_older_release_is_replaced_in_passing(small: RunningDaemon) -> None:
    old = start_version(small, "0.0.9", 0, 0)
    told: list[tuple[str, str]] = []
    client = small.client(telling=Telling(replaced=lambda *versions: told.append(versions)))
    assert client.queue.list().tickets == ()
    assert told == [("0.0.9", VERSION)]
    assert small.who is not None and small.who.pid != old
    assert proc.start_time(old) is None


@pytest.mark.rule("C-204", "C-287", "C-205")
def test_a_busy_daemon_of_an_older_release_is_used_if_it_can_be(small: RunningDaemon, tmp_path: Path) -> None:
    old = start_version(small, "0.0.9", 0, 1)
    # A replacement would need it idle: this request keeps it busy.
    with small.client() as busy, pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "_is_replaceable", lambda hello: False)
        busy.submissions.submit(spec("0" * 8, "until", str(tmp_path / "go")), Mode.DIRECT)
    client = small.client()
    assert len(client.queue.list().tickets) == 1
    assert small.who is not None and small.who.pid == old
    (tmp_path / "go").touch()


@pytest.mark.rule("C-204", "C-205", "C-287", "T40")
def test_T40_a_daemon_that_speaks_another_protocol_is_told_and_can_be_stopped(small: RunningDaemon) -> None:
    newer = start_version(small, "9.0.0", 7, 8)
    client = small.client()
    with pytest.raises(DaemonError) as error:
        client.queue.list()
    assert "9.0.0" in error.value.message and VERSION in error.value.message
    assert error.value.hint == "`aj daemon restart`"
    status = client.daemon.status()
    assert (status.presence, status.pid) == (Presence.RUNNING, newer)
    assert client.daemon.restart().hello.version == VERSION
    assert proc.start_time(newer) is None


@pytest.mark.rule("C-221")
def test_an_idle_daemon_leaves_and_the_next_command_starts_the_next_one(small: RunningDaemon) -> None:
    client = small.client(AJ_DAEMON_IDLE="0.3")
    first = client._line.hello()
    who = proc.identity(first.pid)
    assert proc.wait_gone(who, LIMIT_S)
    place = Place(small.home.layout)
    assert not place.socket.exists() and place.read() is None
    assert client.queue.list().tickets == ()
    assert client._line.hello().instance != first.instance


@pytest.mark.rule("C-221")
def test_commands_that_meet_the_gap_all_succeed(small: RunningDaemon) -> None:
    instances = set()
    for number in range(12):
        client = small.client(AJ_DAEMON_IDLE="0.05")
        aj_id = f"{number:08x}"
        assert client.submissions.submit(spec(aj_id, "ok"), Mode.DIRECT, wait=True).ticket.id == aj_id
        instances.add(client._line.hello().instance)
        threading.Event().wait(0.04 + number * 0.003)
    assert len(small.client().queue.list().tickets) == 12
    assert len(instances) > 1, "some met a gap"


@pytest.mark.rule("C-200")
def test_whoever_is_blocked_is_told_and_then_who_blocks(small: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "PATIENCE_S", 0.1)
    monkeypatch.setattr(launch, "LOCK_S", 0.3)
    place = Place(small.home.layout)
    place.prepare()
    told: list[str] = []
    client = small.client(telling=Telling(blocked=lambda: told.append("blocked")))
    with lock.held(small.home.layout.daemon_lock):
        atomic.write_json(place.folder / "starter.json", {"pid": 4242})
        with pytest.raises(DaemonError, match="process 4242"):
            client.queue.list()
    assert told == ["blocked"]
    assert client.queue.list().tickets == ()


@pytest.mark.rule("C-201", "T33")
def test_a_slow_start_is_told_and_waited_for(small: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "PATIENCE_S", 0.1)
    monkeypatch.setattr(
        places, "program", lambda: ["/bin/sh", "-c", f'sleep 0.5; exec "{sys.executable}" "$@"', "sh", str(SMALL)]
    )
    told: list[str] = []
    client = small.client(telling=Telling(starting=lambda: told.append("starting")))
    assert client.queue.list().tickets == ()
    assert told == ["starting"]


@pytest.mark.rule("T33")
def test_T33_the_limit_is_half_a_minute() -> None:
    assert (launch.START_S, launch.LOCK_S, launch.PATIENCE_S) == (30.0, 10.0, 1.0)


@pytest.mark.rule("C-201")
def test_a_child_that_dies_shows_its_last_lines(small: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    small.home.layout.prepare()
    small.home.layout.daemon_log.write_text("a line of an earlier daemon\n")
    script = 'for n in $(seq 30); do echo "line $n"; done; exit 3'
    monkeypatch.setattr(places, "program", lambda: ["/bin/sh", "-c", script, "sh"])
    begun = time.monotonic()
    with pytest.raises(DaemonError) as error:
        small.client().queue.list()
    assert time.monotonic() - begun < 5
    assert "line 30" in error.value.message and "line 11\n" in error.value.message
    assert "line 10\n" not in error.value.message and "earlier" not in error.value.message
    assert error.value.exit_code == 7


@pytest.mark.rule("C-201")
def test_a_child_that_knows_why_it_dies_says_so(small: RunningDaemon) -> None:
    with pytest.raises(DaemonError, match="AJ_LOG_LEVEL='loud'"):
        small.client(AJ_LOG_LEVEL="loud").queue.list()


@pytest.mark.rule("C-201")
def test_a_child_that_is_never_ready_is_ended(small: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "START_S", 0.3)
    monkeypatch.setattr(places, "program", lambda: ["/bin/sh", "-c", "exec sleep 60", "sh"])
    with pytest.raises(DaemonError) as error:
        small.client().queue.list()
    assert error.value.code == "not-ready"
    state = str(small.home.folders.state)
    assert all(is_gone(pid) for pid in proc.with_environment("AJ_STATE_DIR", state))


@pytest.mark.rule("C-201")
def test_a_program_that_is_gone_is_told(small: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "program", lambda: ["/no/such/python"])
    with pytest.raises(DaemonError, match="cannot start the daemon: No such file"):
        small.client().queue.list()


@pytest.mark.rule("C-200")
def test_a_second_daemon_does_not_come_to_be(small: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    first = small.start()
    place = Place(small.home.layout)
    run = f"import runpy; runpy.run_path({str(SMALL)!r}, run_name='__main__')"
    script = f"import aj.daemon.serve as s; s.PREDECESSOR_S = 0.2; {run}"
    found = proc.run([sys.executable, "-c", script], env=small.home.env, timeout_s=30)
    assert found.code == 7
    assert presence.look(place).hello.instance == first.instance  # type: ignore[union-attr]


def test_a_daemon_whose_socket_was_taken_away_leaves(small: RunningDaemon) -> None:
    hello = small.start(AJ_DAEMON_IDLE="2")
    who = proc.identity(hello.pid)
    Place(small.home.layout).socket.unlink()
    assert small.client().queue.list().tickets == ()
    assert proc.wait_gone(who, LIMIT_S)
    assert small.who != who


@pytest.mark.rule("C-198")
def test_one_daemon_serves_all_projects(small: RunningDaemon) -> None:
    seen = set()
    for name in ("a", "b"):
        client = small.client(small.home.project(name))
        client.submissions.submit(spec(f"{len(seen)}" * 8, "ok"), Mode.QUEUED)
        seen.add(client._line.hello().instance)
        assert len(client.queue.list().tickets) == 1
    assert len(seen) == 1


@pytest.mark.rule("C-207", "C-225")
def test_a_full_daemon_is_no_stranger_and_can_be_stopped(small: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "AGAIN_S", (0.01,))
    hello = small.start()
    with ExitStack() as stack:
        for _ in range(paths.MAX_CONNECTIONS):
            line = stack.enter_context(socket.socket(socket.AF_UNIX))
            line.connect(hello.socket)
            line.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n")
            assert line.recv(100)
        client = small.client()
        with pytest.raises(DaemonError) as error:
            client.queue.list()
        assert error.value.code == "busy"
        status = client.daemon.status()
        assert (status.presence, status.pid) == (Presence.RUNNING, hello.pid)
        assert client.daemon.stop().pid == hello.pid


def test_a_daemon_that_is_killed_before_it_takes_the_question_is_no_stranger(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(daemon.home.layout)
    place.prepare()
    looks: list[str] = []
    read = Wire.read

    def cut_off(self: Wire, target: str, headers: Mapping[str, str], *, silence_s: float) -> Answer:
        looks.append(target)
        if len(looks) == 1:
            raise NotSent("[Errno 104] Connection reset by peer")
        return read(self, target, headers, silence_s=silence_s)

    monkeypatch.setattr(Wire, "read", cut_off)
    assert presence.look(place).presence is Presence.STOPPED and len(looks) == 2
