"""A file is there whole or not at all, private, and durable; what is damaged is set aside, never lost."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from aj.base.errors import AjError
from aj.store import atomic


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def any_umask(request: pytest.FixtureRequest):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.rule("C-229")
def test_everything_is_private_whatever_the_umask(tmp_path: Path, any_umask: None) -> None:
    folder = atomic.make_folder(tmp_path / "a" / "b" / "c")
    atomic.write_bytes(folder / "f", b"x")
    assert [mode(path) for path in (tmp_path / "a", tmp_path / "a" / "b", folder)] == [0o700] * 3
    assert mode(folder / "f") == 0o600


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    atomic.make_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a") == 0o755


def test_a_file_in_the_way_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(AjError, match=r"cannot write .*/a/b"):
        atomic.make_folder(tmp_path / "a" / "b")
    with pytest.raises(AjError, match="File exists"):
        atomic.make_folder(tmp_path / "a")


@pytest.mark.rule("C-229", "C-275")
def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f"
    atomic.write_bytes(path, b"old")

    def break_off() -> None:
        with atomic.writing(path) as out:
            out.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod", "open"])
@pytest.mark.rule("C-229", "C-275")
def test_a_disk_that_refuses_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "f"
    atomic.write_bytes(path, b"old")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(AjError) as caught:
            atomic.write_bytes(path, b"new")
    assert caught.value.code == "cannot-write"
    assert str(path) in caught.value.message
    assert caught.value.message.endswith("No space left on device")
    assert os.listdir(tmp_path) == ["f"]
    assert path.read_bytes() == b"old"


@pytest.mark.rule("C-229")
def test_data_then_name_are_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real_fsync(handle)

    def replace(source: Path, target: Path) -> None:
        calls.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    atomic.write_bytes(tmp_path / "f", b"x")
    assert calls == ["file", "rename", "folder"]


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "f"
    bodies = [bytes([number]) * 200_000 for number in range(4)]
    atomic.write_bytes(path, bodies[0])
    done = threading.Event()
    odd: list[int] = []

    def look() -> None:
        while not done.is_set():
            if path.read_bytes() not in bodies:
                odd.append(1)

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(10):
        for body in bodies:
            atomic.write_bytes(path, body)
    done.set()
    reader.join(10)
    assert odd == []


def test_odd_names_survive_json(tmp_path: Path) -> None:
    import json

    atomic.write_json(tmp_path / "f", {"path": "\udcff é \x00"})
    assert json.loads((tmp_path / "f").read_bytes()) == {"path": "\udcff é \x00"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        atomic.write_json(tmp_path / "f", float("nan"))
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.rule("C-245")
def test_damaged_files_are_set_aside_one_beside_the_other(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    for number in (1, 2, 3):
        path.write_text(str(number))
        assert atomic.set_aside(path).name == f"q.json.damaged-{number}"
    assert [(tmp_path / f"q.json.damaged-{number}").read_text() for number in (1, 2, 3)] == ["1", "2", "3"]
    (tmp_path / "q.json.damaged-4").symlink_to("nowhere")
    path.write_text("5")
    assert atomic.set_aside(path).name == "q.json.damaged-5"


def test_a_sweep_takes_what_killed_writers_left_and_nothing_else(tmp_path: Path) -> None:
    for name in (".1.abc.part", ".hidden", "x.part", "keep"):
        (tmp_path / name).write_text("")
    atomic.sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hidden", "keep", "x.part"]
    atomic.sweep(tmp_path / "missing")


def test_removing_what_is_gone_is_fine(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    atomic.remove(tmp_path / "f")
    atomic.remove(tmp_path / "f")
    atomic.remove(tmp_path / "missing" / "f")
    (tmp_path / "d").mkdir()
    with pytest.raises(AjError, match="cannot write"):
        atomic.remove(tmp_path / "d")


def test_a_wide_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("")
    path.chmod(0o644)
    assert atomic.is_wide(path)
    path.chmod(0o600)
    assert not atomic.is_wide(path)
    assert not atomic.is_wide(tmp_path / "missing")
