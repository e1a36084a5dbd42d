"""Several files changed together: all of them, or none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aj.base.errors import AjError, Refused
from aj.store import atomic, changes
from aj.store.changes import Change


def tree(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def change(path: str, data: str | None, *, holds: bool = True, keeps: bool = False) -> Change:
    return Change(path, None if data is None else data.encode(), 0o644, lambda _: holds, keeps)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    for name in ("one", "two", "three"):
        (tmp_path / "a" / name).write_text(name)
    return tmp_path


@pytest.mark.rule("C-138")
def test_all_are_made_and_the_old_ones_kept_where_that_is_wanted(folder: Path) -> None:
    (folder / "a" / "two.orig-1").write_text("older")
    kept = changes.apply(
        folder,
        [
            change("a/one", "1"),
            change("a/two", "2", keeps=True),
            change("a/three", None, keeps=True),
            change("b/c/d", "4"),
        ],
    )
    assert {path: found.name for path, found in kept.items()} == {"a/two": "two.orig-2", "a/three": "three.orig-1"}
    assert tree(folder) == {
        "a/one": "1",
        "a/two": "2",
        "a/two.orig-1": "older",
        "a/two.orig-2": "two",
        "a/three.orig-1": "three",
        "b/c/d": "4",
    }


@pytest.mark.rule("C-138")
@pytest.mark.parametrize("at", range(6))
def test_whatever_step_fails_nothing_has_changed(folder: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, really, steps = tree(folder), os.rename, 0

    def rename(old: Path, new: Path) -> None:
        nonlocal steps
        steps += 1
        if steps == at + 1:
            raise OSError(28, "No space left on device")
        really(old, new)

    monkeypatch.setattr(os, "rename", rename)
    plan = [change("a/one", "1"), change("a/two", "2", keeps=True), change("n/new", "4"), change("a/three", None)]
    with pytest.raises(AjError, match="No space left"):
        changes.apply(folder, plan)
    assert tree(folder) == before
    assert not (folder / "n").exists()


@pytest.mark.rule("C-138")
def test_what_somebody_wrote_after_a_kill_is_kept_beside(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, note = tree(folder), tmp_path / "state" / "note.json"

    class Killed(BaseException):
        """The process is gone: nothing of what it would still do happens."""

    def die(name: str) -> None:
        if name == "changes.after-step":
            raise Killed

    monkeypatch.setattr(changes.contextlib.ExitStack, "__exit__", lambda *_: False)
    monkeypatch.setattr(changes.crash, "point", die)
    with pytest.raises(Killed):
        changes.apply(folder, [change("a/one", "1"), change("a/two", "2")], note)
    monkeypatch.undo()
    (folder / "a" / "one").write_text("mine")
    assert changes.take_back(folder, note)
    assert {path: text for path, text in tree(folder).items() if "state" not in path} == {
        **before,
        "a/one.orig-1": "mine",
    }
    assert not changes.take_back(folder, note)


@pytest.mark.rule("C-138")
def test_what_another_writer_has_beside_is_left_alone(folder: Path, tmp_path: Path) -> None:
    with atomic.writing(folder / "a" / "mine") as out:
        out.write(b"mine")
        left = folder / "a" / ".4242.0123456789ab.old.part"
        left.write_text("of a process that was killed")
        changes.apply(folder, [change("a/one", "1")], tmp_path / "note.json")
    assert (folder / "a" / "mine").read_text() == "mine"
    assert not left.exists()


@pytest.mark.rule("C-138")
def test_a_file_that_changed_meanwhile_stops_it(folder: Path) -> None:
    before = tree(folder)
    with pytest.raises(Refused, match="changed just now"):
        changes.apply(folder, [change("a/one", "1"), change("a/two", "2", holds=False)])
    assert tree(folder) == before


@pytest.mark.rule("C-138", "C-338")
def test_nothing_is_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "l").symlink_to(outside)
    (folder / "f").write_text("x")
    for path in ("l/x", "l/deep/x", "f/x"):
        with pytest.raises(Refused, match="no plain folder"):
            changes.apply(folder, [change("a/one", "1"), change(path, "2")])
    assert list(outside.iterdir()) == []
    assert (folder / "a" / "one").read_text() == "one"
