"""What is kept between two packings: an unchanged tree is not read, and whatever is doubtful is."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aj.model.code import CodeRef
from aj.pack import archive, cache, content, digest, walk
from tests.conftest import MovedClock
from tests.pack import trees
from tests.pack.trees import Link, plan, plant


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "code"


@pytest.fixture
def tree(root: Path) -> Path:
    plant(root, {"a": "1", "b": "2", "d/c": "3", "l": Link("a"), "empty": "", "big": b"x" * (content.PIECE + 1)})
    return root


def read(tree: Path, kept: Path, clock: MovedClock, *patterns: str) -> tuple[str, list[bytes]]:
    """The digest, and the files that were opened for it."""
    with trees.opened(tree) as opened:
        found = digest.of(walk.select(plan(tree, *patterns), kept, clock=clock))
    return found, sorted(path.removeprefix(os.fsencode(tree) + b"/") for path in opened)


FILES = [b"a", b"b", b"big", b"d/c", b"empty"]


@pytest.mark.rule("C-193")
def test_an_unchanged_tree_opens_no_file(tree: Path, kept: Path, later: MovedClock) -> None:
    first, opened = read(tree, kept, later)
    assert opened == FILES
    again, opened = read(tree, kept, later)
    assert (again, opened) == (first, [])
    assert digest.of(walk.select(plan(tree))) == first


@pytest.mark.rule("C-193", "C-192", "T06")
def test_T06_packing_an_unchanged_tree_reads_nothing_and_gives_the_same_archive(
    tree: Path, kept: Path, tmp_path: Path, later: MovedClock
) -> None:
    def pack() -> CodeRef:
        return archive.pack(walk.select(plan(tree), kept, clock=later), folder=tmp_path / "store")

    first = pack()
    with trees.opened(tree) as opened:
        assert pack() == first
    assert opened == []


@pytest.mark.rule("C-193")
@pytest.mark.parametrize(
    ("change", "opened"),
    [
        (lambda tree: os.utime(tree / "a"), [b"a"]),
        (lambda tree: (tree / "big").chmod(0o600), [b"big"]),
        (lambda tree: ((tree / "b").unlink(), (tree / "b").write_text("2")), [b"b"]),
        (lambda tree: os.link(tree / "d/c", tree.parent / "outside"), [b"d/c"]),
    ],
)
def test_a_file_that_was_only_touched_is_read_alone(
    tree: Path, kept: Path, later: MovedClock, change: Callable[[Path], object], opened: list[bytes]
) -> None:
    first, _ = read(tree, kept, later)
    change(tree)
    assert read(tree, kept, later) == (first, opened)
    assert read(tree, kept, later) == (first, []), "and then it is known again"


@pytest.mark.rule("C-193", "T07")
@pytest.mark.parametrize(
    "change",
    [
        lambda tree: (tree / "a").write_text("9"),
        lambda tree: (tree / "a").write_text("longer"),
        lambda tree: (tree / "a").chmod(0o755),
        lambda tree: (tree / "new").write_text(""),
        lambda tree: (tree / "empty").unlink(),
        lambda tree: ((tree / "l").unlink(), (tree / "l").symlink_to("b")),
        lambda tree: (tree / "a").rename(tree / "e"),
        lambda tree: (tree / "folder").mkdir(),
        lambda tree: ((tree / "a").unlink(), (tree / "a").symlink_to("b")),
    ],
)
def test_a_change_is_seen(tree: Path, kept: Path, later: MovedClock, change: Callable[[Path], object]) -> None:
    first, _ = read(tree, kept, later)
    change(tree)
    found, _ = read(tree, kept, later)
    assert found != first
    assert found == digest.of(walk.select(plan(tree)))
    assert read(tree, kept, later) == (found, [])


@pytest.mark.rule("C-193")
def test_a_file_that_was_fresh_is_read_again_and_its_hidden_change_is_seen(
    tree: Path, kept: Path, clock: MovedClock
) -> None:
    now = time.time()
    for name in ("a", "b", "big", "d/c", "empty"):
        os.utime(tree / name, (now - 100, now - 100))
    os.utime(tree / "a", (now + 1000, now + 1000))
    clock.at = now + 1001
    first, opened = read(tree, kept, clock)
    assert opened == FILES
    assert read(tree, kept, clock) == (first, [b"a"]), "one second is too near"
    clock.at = now + 1003
    assert read(tree, kept, clock) == (first, [b"a"])
    assert read(tree, kept, clock) == (first, []), "three seconds are not"
    clock.at = now + 500
    os.utime(tree / "b", (now + 400, now + 400))
    read(tree, kept, clock)
    assert read(tree, kept, clock) == (first, [b"a"]), "nor is a time to come trusted"


@pytest.mark.rule("C-193")
def test_a_change_without_a_trace_in_a_fresh_file_is_seen(tree: Path, kept: Path, clock: MovedClock) -> None:
    """The same size, time and inode: what a coarse clock of a file system lets through."""
    clock.at = time.time()
    first, _ = read(tree, kept, clock)
    facts = walk.select(plan(tree)).facts
    with (tree / "a").open("r+") as file:
        file.write("9")
    selection = walk.select(plan(tree), kept, clock=clock)
    selection.facts[:] = facts
    assert digest.of(selection) != first


@pytest.mark.rule("C-193")
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"nonsense",
        lambda data: data[:-1],
        lambda data: data[:50],
        lambda data: data.replace(b'"digest":"', b'"digest":"0', 1),
        lambda data: data[:-5] + b"xxxxx",
        lambda data: os.urandom(len(data)),
    ],
)
def test_a_damaged_cache_is_made_anew(
    tree: Path, kept: Path, later: MovedClock, damage: Callable[[bytes], bytes]
) -> None:
    first, _ = read(tree, kept, later)
    [file] = kept.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    os.utime(tree / "a")  # so that the second part is looked into as well
    assert read(tree, kept, later) == (first, FILES)
    assert read(tree, kept, later) == (first, [])


@pytest.mark.rule("C-193")
def test_a_cache_of_another_release_is_made_anew(
    tree: Path, kept: Path, later: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = read(tree, kept, later)
    monkeypatch.setattr(cache, "VERSION", "9.9.9")
    assert read(tree, kept, later) == (first, FILES)


@pytest.mark.rule("C-193")
def test_rule_sets_and_roots_do_not_disturb_each_other(
    tree: Path, kept: Path, tmp_path: Path, later: MovedClock
) -> None:
    whole, _ = read(tree, kept, later)
    part, opened = read(tree, kept, later, "d/")
    assert part != whole and opened == [name for name in FILES if name != b"d/c"]
    assert read(tree, kept, later) == (whole, [])
    assert read(tree, kept, later, "d/") == (part, [])


@pytest.mark.rule("C-193")
def test_a_cache_that_cannot_be_written_is_no_error(tree: Path, later: MovedClock, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    first, _ = read(tree, tmp_path / "file" / "cache", later)
    assert read(tree, tmp_path / "file" / "cache", later) == (first, FILES)


def test_old_cache_files_go(tree: Path, kept: Path, later: MovedClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "KEEP", 3)
    for number in range(6):
        read(tree, kept, later, f"pattern{number}")
    assert len(list(kept.iterdir())) == 3
    assert read(tree, kept, later, "pattern5")[1] == []


def test_the_cache_is_private_and_holds_no_content(tree: Path, kept: Path, later: MovedClock) -> None:
    plant(tree, {"a": "a secret word"})
    read(tree, kept, later)
    [file] = kept.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept.stat().st_mode & 0o777 == 0o700
    assert b"secret" not in file.read_bytes()
    head = json.loads(file.read_bytes().split(b"\n")[0].partition(b" ")[2])
    assert head["root"] == str(tree)
