"""The product's own daemon with its own engine: it starts, stays small, opens no port, and is driven by settings."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from aj.base import paths, proc
from aj.base.errors import DaemonError
from tests.conftest import RunningDaemon

LIMIT_S = 20
# What comes with the first job, the first code, the first bucket, the first question to somebody else.
IDLE = (
    *("aj.backend.local.driver", "aj.bucket.storage", "aj.engine.buckets", "aj.pack.archive", "aj.template.tree"),
    *("aj.net.http", "urllib3", "ssl", "yaml", "_hashlib", "ctypes", "asyncio", "email", "http.client"),
)


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


@pytest.mark.usefixtures("programs")
def test_what_an_idle_one_has_no_use_for_is_not_loaded(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom aj.base import paths, settings\nfrom aj.base.clock import SYSTEM\n"
        "from aj.daemon import serve\n"
        "known = settings.read(); serve.real_engine(known, paths.folders(known), SYSTEM)\n"
        f"print([name for name in {IDLE!r} if name in sys.modules])"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


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
