"""Programs: told line by line while they run, and ended with all that they started."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aj.base import proc

pytestmark = pytest.mark.usefixtures("programs")

DEAF = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.pause()"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""


def follow(
    source: str,
    hear: Callable[[str], None],
    *,
    timeout_s: float = 30,
    stop: Callable[[], bool] = lambda: False,
    grace_s: float = 0.2,
) -> int:
    argv = [sys.executable, "-c", source]
    return proc.follow(
        argv, hear, cwd=Path("/"), env={"A": "b"}, timeout_s=timeout_s, stop=stop, grace_s=lambda: grace_s
    )


def test_lines_come_while_it_runs(tmp_path: Path) -> None:
    go = tmp_path / "go"
    source = f"""
import os, sys, time
print("one", flush=True)
while not os.path.exists({str(go)!r}):
    time.sleep(0.01)
sys.stderr.write("10%\\r20%\\r\\nüber\\xff")
sys.stderr.flush()
os.write(1, b"\\xff end")
sys.exit(7)
"""
    heard: list[str] = []

    def hear(line: str) -> None:
        heard.append(line)
        go.touch()  # it ends only when its first line was heard

    assert follow(source, hear) == 7
    assert heard == ["one", "10%", "20%", "überÿ\ufffd end"]


def test_a_long_line_comes_in_parts_and_nothing_is_lost() -> None:
    heard: list[str] = []
    assert follow("print('x' * 300_000, end='')", heard.append) == 0
    assert len(heard) > 1 and "".join(heard) == "x" * 300_000


def test_what_it_leaves_behind_is_not_waited_for() -> None:
    heard: list[str] = []
    source = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid)
"""
    assert follow(source, heard.append) == 0
    assert proc.send(proc.identity(int(heard[0])), 9)


def test_one_that_closes_its_output_is_waited_for_in_silence() -> None:
    assert follow("import os, time; os.close(1); os.close(2); time.sleep(0.05); os._exit(3)", lambda _: None) == 3


@pytest.mark.rule("C-256")
@pytest.mark.parametrize("way", ["time", "stop"])
def test_its_whole_group_is_ended(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    really = time.monotonic
    monkeypatch.setattr(proc.time, "monotonic", lambda: really() + (3600 if heard and way == "time" else 0))
    kind = TimeoutError if way == "time" else InterruptedError
    with pytest.raises(kind):  # once it has told its pids
        follow(DEAF, heard.append, timeout_s=600, stop=lambda: bool(heard) and way == "stop")
    pids = [int(word) for word in heard[0].split()]
    assert len(pids) == 2
    limit = really() + 20
    while any(proc.start_time(pid) for pid in pids):
        assert really() < limit
        time.sleep(0.01)


def test_one_that_cannot_start_says_so() -> None:
    with pytest.raises(OSError):
        proc.follow(["/nowhere/at-all"], lambda _: None, cwd=Path("/"), env={}, timeout_s=1)
