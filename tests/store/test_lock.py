"""A lock keeps others out, says who holds it, and dies with its holder."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aj.base import proc
from aj.base.errors import AjError, Refused
from aj.store import lock

OWNER = """
import sys, signal
from pathlib import Path
from aj.store import lock
lock.own(Path(sys.argv[1]), "socket /there")
print("owned", flush=True)
signal.pause()
"""


def owner_elsewhere(path: Path) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", OWNER, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"owned\n"
    return child


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate(timeout=10)


def test_one_at_a_time(tmp_path: Path) -> None:
    path, inside, worst = tmp_path / "locks" / "a.lock", 0, 0

    def count() -> None:
        nonlocal inside, worst
        for _ in range(10):
            with lock.held(path):
                inside += 1
                worst = max(worst, inside)
                inside -= 1

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert worst == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_whoever_waits_in_vain_is_refused_and_was_told_once(tmp_path: Path) -> None:
    path, told = tmp_path / "a.lock", []
    with (
        lock.held(path),
        pytest.raises(Refused, match="held by another process"),
        lock.held(path, wait_s=0.3, blocked=lambda: told.append(1)),
    ):
        pass
    assert told == [1]
    with lock.held(path, wait_s=0):
        pass


def test_a_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with pytest.raises(KeyError), lock.held(path):
        raise KeyError
    with lock.held(path, wait_s=0):
        pass


@pytest.mark.rule("C-238", "C-273")
def test_a_second_owner_is_told_who_the_first_is_and_since_when(tmp_path: Path, programs: None) -> None:
    path = tmp_path / "locks" / "key.lock"
    child = owner_elsewhere(path)
    try:
        with pytest.raises(Refused) as caught:
            lock.own(path, "socket /here")
        details = caught.value.details
        assert details["pid"] == child.pid
        assert details["note"] == "socket /there"
        assert details["host"] == os.uname().nodename
        assert str(details["since"]).endswith("Z")
        for word in (str(child.pid), "socket /there", str(details["since"]), os.uname().nodename):
            assert word in caught.value.message
        assert caught.value.exit_code == 5
        found = lock.living_holder(path)
        assert found is not None
        assert found.pid == child.pid
    finally:
        end(child)


@pytest.mark.rule("C-238", "T32")
def test_a_killed_owner_holds_nothing(tmp_path: Path, programs: None) -> None:
    path = tmp_path / "key.lock"
    child = owner_elsewhere(path)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=10)
    assert lock.holder(path) is not None  # its word is still there
    assert lock.living_holder(path) is None  # and believed by nobody
    mine = lock.own(path, "socket /here")
    found = lock.living_holder(path)
    assert found is not None
    assert found.pid == os.getpid()
    mine.release()
    mine.release()
    assert lock.holder(path) is None


@pytest.mark.rule("C-285")
def test_a_process_with_the_same_pid_is_not_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "key.lock"
    lock.own(path, "")
    word = path.with_suffix(".json")
    value = json.loads(word.read_bytes())
    for change in ({"start_time": "1"}, {"boot_id": "another"}, {"pid": 2**22 + 5}):
        word.write_text(json.dumps({**value, **change}))
        assert lock.living_holder(path) is None
    word.write_text(json.dumps({**value, "start_time": "1", "host": "elsewhere"}))
    assert lock.living_holder(path) is not None  # nobody here can know
    for damaged in ("", "[]", "{}", '{"pid":"x"}', "5"):
        word.write_text(damaged)
        assert lock.holder(path) is None
        with pytest.raises(Refused, match="held by another process"):
            lock.own(path, "")


@pytest.mark.rule("C-246")
def test_looking_at_the_holder_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "key.lock"
    assert lock.living_holder(path) is None
    assert os.listdir(tmp_path) == []
    lock.own(path, "")
    before = sorted((entry.name, entry.stat().st_mtime_ns) for entry in os.scandir(path.parent))
    lock.living_holder(path)
    assert sorted((entry.name, entry.stat().st_mtime_ns) for entry in os.scandir(path.parent)) == before


@pytest.mark.rule("T32")
def test_programs_started_by_the_owner_do_not_inherit_the_lock(tmp_path: Path, programs: None) -> None:
    path = tmp_path / "key.lock"
    mine = lock.own(path, "")
    child = proc.spawn(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        mine.release()
        lock.own(path, "").release()
        held = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{child.pid}/fd")]
        assert str(path) not in held
    finally:
        child.kill()
        child.wait(10)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("")
    with pytest.raises(AjError, match="cannot write"), lock.held(tmp_path / "locks" / "a.lock"):
        pass


def test_a_word_that_cannot_be_written_gives_the_lock_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key.lock"

    def full(*_: object) -> None:
        raise AjError("full")

    with monkeypatch.context() as patch:
        patch.setattr("aj.store.atomic.write_json", full)
        with pytest.raises(AjError, match="full"):
            lock.own(path, "")
    lock.own(path, "").release()
