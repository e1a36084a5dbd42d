"""The product's own daemon with its own engine: it starts, stays small, opens no port, and is driven by settings."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from aj.base import paths, proc
from aj.base.errors import DaemonError
from tests.conftest import RunningDaemon

LIMIT_S = 20


def inodes(table: str) -> set[str]:
    """The sockets of a table of the system."""
    return {line.split()[9] for line in Path(table).read_text().splitlines()[1:]}


@pytest.mark.rule("C-201", "C-204", "T34")
def test_it_starts_and_answers_in_little_memory(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    program = paths.program()
    monkeypatch.setattr(paths, "program", lambda: ["/bin/sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", *program])
    client = daemon.client()
    for _ in range(20):
        assert client.queue.list(all_projects=True).tickets == ()
        assert client.jobs.list(all_projects=True).jobs == ()
    assert daemon.who is not None
    pages = int(Path(f"/proc/{daemon.who.pid}/statm").read_text().split()[1])
    assert pages * resource.getpagesize() < 64 * 1024 * 1024


@pytest.mark.rule("T31", "T37")
def test_it_opens_no_port_and_is_known_by_its_instance(daemon: RunningDaemon) -> None:
    hello = daemon.start()
    handles = [os.readlink(link) for link in Path(f"/proc/{hello.pid}/fd").iterdir()]
    sockets = {name.removeprefix("socket:[").removesuffix("]") for name in handles if name.startswith("socket:")}
    assert sockets
    assert not sockets & (inodes("/proc/net/tcp") | inodes("/proc/net/tcp6") | inodes("/proc/net/udp"))
    daemon.kill()
    assert daemon.start().instance != hello.instance


@pytest.mark.rule("C-221", "C-085")
def test_the_setting_says_how_long_an_idle_one_stays(daemon: RunningDaemon) -> None:
    settings = daemon.home.layout.user_settings
    settings.parent.mkdir(parents=True)
    settings.write_text('daemon.idle = "1s"\n')
    daemon.start()
    assert daemon.who is not None
    assert proc.wait_gone(daemon.who, LIMIT_S)


@pytest.mark.rule("C-086", "C-092")
def test_broken_settings_do_not_keep_it_from_starting_and_a_broken_variable_does(daemon: RunningDaemon) -> None:
    settings = daemon.home.layout.user_settings
    settings.parent.mkdir(parents=True)
    settings.write_text("[[[")
    daemon.start()
    assert "settings are not used" in daemon.home.layout.daemon_log.read_text()
    daemon.client().daemon.stop()
    with pytest.raises(DaemonError, match="AJ_DAEMON_IDLE"):
        daemon.start(AJ_DAEMON_IDLE="soon")
