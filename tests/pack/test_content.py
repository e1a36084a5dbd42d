"""Reading: a file is taken as it was at one moment, or named; nothing but a file is ever read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aj.base.errors import UserError
from aj.pack import archive, content, digest, unpack, walk
from tests.pack import trees
from tests.pack.trees import Link, plan, plant

Change = Callable[[Path], Callable[[], object]]
LARGE = content.PIECE + 10


class Busy:
    """Does something whenever a file of some name is read, a given number of times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path, times: int, act: Callable[[], object]) -> None:
        self.reads = 0
        real = os.read
        inode = path.stat().st_ino

        def read(handle: int, size: int) -> bytes:
            data = real(handle, size)
            if os.fstat(handle).st_ino == inode and data:
                self.reads += 1
                if self.reads <= times:
                    act()
            return data

        monkeypatch.setattr(os, "read", read)


def append(path: Path) -> Callable[[], object]:
    def act() -> None:
        with path.open("ab") as file:
            file.write(b"more")

    return act


def overwrite(path: Path) -> Callable[[], object]:
    def act() -> None:
        with path.open("r+b") as file:
            file.write(b"new!")
        os.utime(path)

    return act


@pytest.mark.rule("C-270", "C-192")
@pytest.mark.parametrize("size", [100, LARGE])
@pytest.mark.parametrize("change", [append, overwrite])
def test_a_file_that_changes_once_is_read_again(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    change: Callable[[Path], Callable[[], object]],
) -> None:
    plant(root, {"a": "1", "log": "x" * size, "z": "2"})
    selection = walk.select(plan(root))
    Busy(monkeypatch, root / "log", 1, change(root / "log"))
    ref = archive.pack(selection, folder=tmp_path / "store")
    monkeypatch.undo()
    found = archive.find(tmp_path / "store", ref)
    assert found is not None
    unpack.extract(found, ref.archive_sha256, tmp_path / "out")
    assert (tmp_path / "out/log").read_bytes() == (root / "log").read_bytes()
    assert ref.digest == digest.of(walk.select(plan(root)))
    assert ref.bytes == size + 2 + 4 * (change is append)


@pytest.mark.rule("C-270", "C-192")
@pytest.mark.parametrize("size", [100, LARGE])
def test_a_file_that_keeps_changing_is_named_and_nothing_is_left(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    plant(root, {"a": "1", "log": "x" * size})
    selection = walk.select(plan(root))
    busy = Busy(monkeypatch, root / "log", 99, append(root / "log"))
    with pytest.raises(UserError, match="`log` changes while it is read") as error:
        archive.pack(selection, folder=tmp_path / "store")
    monkeypatch.undo()
    assert error.value.exit_code == 2
    assert list((tmp_path / "store").iterdir()) == []
    assert busy.reads <= 8, "it is read twice, not for ever"


@pytest.mark.rule("C-270")
def test_a_file_that_has_changed_since_the_walk_is_taken_as_it_is_now(root: Path) -> None:
    plant(root, {"a": "old", "grown": "x"})
    selection = walk.select(plan(root))
    plant(root, {"a": "newer", "grown": b"y" * LARGE})
    (root / "a").chmod(0o755)
    assert digest.of(selection) == digest.of(walk.select(plan(root)))


@pytest.mark.rule("C-270")
@pytest.mark.parametrize("size", [100, LARGE])
def test_a_file_that_vanishes_is_named(root: Path, size: int) -> None:
    plant(root, {"a": "x" * size})
    selection = walk.select(plan(root))
    (root / "a").unlink()
    with pytest.raises(UserError, match="`a` changes while it is read"):
        digest.of(selection)


@pytest.mark.rule("C-267", "C-264")
@pytest.mark.parametrize("size", [100, LARGE])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_became_something_else_since_the_walk_is_not_read(root: Path, size: int, kind: str) -> None:
    plant(root, {"a": "x" * size})
    selection = walk.select(plan(root))
    (root / "a").unlink()
    if kind == "pipe":
        os.mkfifo(root / "a")
    else:
        plant(root, {"a": Link("/etc/passwd")} if kind == "link" else {"a/": ""})
    with pytest.raises(UserError, match="`a` changes while it is read"):
        digest.of(selection)


@pytest.fixture
def public() -> Iterator[Path]:
    folder = trees.open_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.rule("C-268")
@pytest.mark.parametrize("size", [100, LARGE])
def test_a_file_that_may_not_be_read_any_more_is_named(public: Path, size: int) -> None:
    plant(public, {"a": "x" * size})
    selection = walk.select(plan(public))
    (public / "a").chmod(0)

    def refused() -> str:
        with pytest.raises(UserError) as error:
            digest.of(selection)
        return error.value.message

    assert trees.as_nobody(refused) == "`a` cannot be read: Permission denied"
