"""What every kind of storage promises, asked of folders and of a real emulator of Azure Blob Storage."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aj.base.errors import NotFound, Refused, UserError
from aj.bucket import mirror
from aj.bucket import storage as storages
from aj.bucket.azure import block_size
from aj.bucket.folder import Folder
from aj.bucket.scope import Scope
from aj.bucket.storage import Bytes, Storage, check_name, objects
from aj.bucket.transfer import Pace
from aj.model.bucket import Owner
from tests.bucket.conftest import Make

MIB = 1 << 20


def test_a_bucket_is_made_once_and_keeps_its_mark(bucket_of: Make) -> None:
    mine = Owner("job-1", "0123456789abcdef")
    made = bucket_of("own")
    assert made.look() is None
    assert made.create(mine)
    assert not made.create(Owner("job-1", "another"))
    seen = made.look()
    assert seen is not None and seen.owner == mine
    made.delete()
    assert made.look() is None
    made.delete()


def test_a_bucket_without_a_mark_belongs_to_its_user(bucket: Storage) -> None:
    seen = bucket.look()
    assert seen is not None and seen.owner is None


@pytest.mark.parametrize("size", [0, 1, 4096, 8 * MIB, 8 * MIB + 1, 21 * MIB])
def test_what_was_put_is_read_back(bucket: Storage, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    moved: list[int] = []
    bucket.put("a/b c/ü.bin", Bytes(data), moved.append, stamp=1_700_000_000_123_456_789)
    found = bucket.head("a/b c/ü.bin")
    assert (found.size_bytes, found.stamp) == (size, 1_700_000_000_123_456_789)
    assert sum(moved) == size
    assert bucket.read("a/b c/ü.bin", 0, size) == data
    assert bucket.read("a/b c/ü.bin", max(0, size - 10), 10) == data[max(0, size - 10) :]


def test_an_object_is_replaced_and_removed(bucket: Storage) -> None:
    first = bucket.put("a.txt", Bytes(b"one"))
    second = bucket.put("a.txt", Bytes(b"two, longer"))
    assert first.etag != second.etag
    assert bucket.head("a.txt").etag == second.etag
    with pytest.raises(Refused) as refused:
        bucket.read("a.txt", 0, 3, first.etag)
    assert refused.value.code == "conflict"
    bucket.remove("a.txt")
    bucket.remove("a.txt")
    with pytest.raises(NotFound):
        bucket.head("a.txt")
    with pytest.raises(NotFound):
        bucket.read("a.txt", 0, 1)


def test_a_listing_is_complete_and_in_order(bucket: Storage) -> None:
    names = ["a-b", "a/x", "a/y/z", "a.b", "ab", "b/1", "b/2", "c"]
    for name in names:
        bucket.put(name, Bytes(name.encode()))
    assert [one.name for one in objects(bucket)] == sorted(names)
    assert [one.name for one in objects(bucket, "a/")] == ["a/x", "a/y/z"]
    assert [one.name for one in objects(bucket, "a")] == sorted(name for name in names if name.startswith("a"))
    paged: list[str] = []
    cursor: str | None = None
    while True:
        page = bucket.page("", cursor, 3)
        paged += [one.name for one in page.objects]
        cursor = page.cursor
        if cursor is None:
            break
    assert paged == sorted(names)


def test_a_part_of_names_is_no_object(bucket: Storage) -> None:
    bucket.put("a/b", Bytes(b"1"))
    with pytest.raises(NotFound):
        bucket.head("a")


def test_of_many_conditional_writers_one_wins_each_round(bucket: Storage) -> None:
    start = threading.Barrier(4)
    won: list[str] = []

    def write(word: str) -> None:
        start.wait()
        try:
            bucket.swap("head", word.encode(), None)
            won.append(word)
        except Refused as error:
            assert error.code == "conflict"

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, "abcd"))
    assert len(won) == 1
    found = bucket.head("head")
    assert bucket.read("head", 0, 1) == won[0].encode()
    second = bucket.swap("head", b"next", found.etag)
    with pytest.raises(Refused) as refused:
        bucket.swap("head", b"late", found.etag)
    assert refused.value.code == "conflict"
    bucket.remove("head")
    with pytest.raises(Refused):
        bucket.swap("head", b"gone", second.etag)


def test_without_the_bucket_every_question_says_so(bucket_of: Make) -> None:
    absent = bucket_of("absent")
    asked = (
        lambda: absent.page("", None),
        lambda: absent.head("a"),
        lambda: absent.put("a", Bytes(b"")),
        lambda: absent.swap("a", b"", None),
    )
    for ask in asked:
        with pytest.raises(NotFound):
            ask()


@pytest.mark.parametrize("name", ["", "/", "a//b", "../x", "a/../b", "a/.", "a\\b", "a\0", "a\n", "x/", "/x", "a."])
def test_a_name_that_leads_elsewhere_names_nothing(bucket: Storage, name: str) -> None:
    for act in (
        lambda: bucket.head(name),
        lambda: bucket.put(name, Bytes(b"")),
        lambda: bucket.remove(name),
        lambda: bucket.read(name, 0, 1),
    ):
        with pytest.raises(UserError):
            act()


def test_a_name_has_an_end() -> None:
    assert check_name("x" * storages.LONGEST_NAME)
    with pytest.raises(UserError):
        check_name("x" * (storages.LONGEST_NAME + 1))


def test_a_block_grows_with_the_object() -> None:
    assert block_size(1) == 8 * MIB
    assert block_size(2 << 40) * 50_000 >= 2 << 40
    assert block_size(2 << 40) % MIB == 0


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A bucket that is a folder, with one object, beside a folder that is nobody's business."""
    made = Folder(tmp_path / "buckets", "data")
    made.create()
    made.put("good/a", Bytes(b"1"))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    return made


@pytest.mark.rule("BK-02")
def test_what_cannot_be_an_object_is_passed_over_and_told(folder: Folder, tmp_path: Path) -> None:
    here = os.fsencode(folder.path)
    for name in (b"bad\nname", b"\xff\xfe", b"dot.", b"good/b\\c"):
        with open(os.path.join(here, name), "w") as out:
            out.write("x")
    os.makedirs(os.path.join(here, b"odd./below"))
    os.mkfifo(folder.path / "pipe")
    (folder.path / "link").symlink_to("good/a")
    folder.put("z", Bytes(b"2"))
    told: list[str] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        page = folder.page("", cursor, 1)
        told += page.told
        cursor, pages = page.cursor, pages + 1
    whys = {words.removeprefix(f"{folder.label}/").partition(" is passed over: ")[::2] for words in told}
    assert {name for name, _ in whys} == {"bad\\x0aname", "\\xff\\xfe", "dot.", "good/b\\c", "odd.", "pipe", "link"}
    assert all(words.isprintable() for words in told) and pages == 2
    assert any("no UTF-8" in why for name, why in whys if name.startswith("\\xff"))
    brought = mirror.download(Scope(folder), tmp_path / "back", Pace(), notes=tmp_path / "notes")
    assert (brought.files, len(brought.told)) == (2, len(whys))
    assert sorted(path.name for path in (tmp_path / "back").rglob("*")) == ["a", "good", "z"]
    assert [one.name for one in folder.page("good/", None).objects] == ["good/a"]
    assert len(folder.page("good/", None).told) == 1


@pytest.mark.rule("BK-14")
def test_no_link_leads_out_of_a_bucket(folder: Folder, tmp_path: Path) -> None:
    (folder.path / "out").symlink_to(tmp_path / "outside")
    (folder.path / "in").symlink_to("good")
    (folder.path / "good/deep").symlink_to(tmp_path / "outside")
    for name in ("out/secret", "in/a", "good/deep/secret"):
        acts: list[Callable[[], object]] = [
            lambda name=name: folder.head(name),
            lambda name=name: folder.read(name, 0, 9),
            lambda name=name: folder.put(name, Bytes(b"mine")),
            lambda name=name: folder.put(f"{name}/more/and/more", Bytes(b"mine")),
            lambda name=name: folder.swap(name, b"mine", None),
            lambda name=name: folder.remove(name),
            lambda name=name: folder.page(name, None),
        ]
        for act in acts:
            with pytest.raises(Refused, match="is a link"):
                act()
    assert (tmp_path / "outside/secret").read_text() == "secret" and folder.read("good/a", 0, 9) == b"1"
    assert os.listdir(tmp_path / "outside") == ["secret"]
    folder.put("out", Bytes(b"in its place"))  # a link itself is replaced and removed, not what it leads to
    folder.remove("good/deep")
    assert [one.name for one in folder.page("", None).objects] == ["good/a", "out"]
    shutil.rmtree(folder.path / ".aj-bucket")
    (folder.path / ".aj-bucket").symlink_to(tmp_path / "outside")
    with pytest.raises(Refused, match="is a link"):
        folder.put("x", Bytes(b"1"))
    assert os.listdir(tmp_path / "outside") == ["secret"]


def test_a_bucket_may_be_a_link_itself(folder: Folder) -> None:
    (folder.root / "linked").symlink_to(folder.path)
    linked = Folder(folder.root, "linked")
    assert linked.put("b/c", Bytes(b"2")).name == "b/c"
    assert [one.name for one in linked.page("", None).objects] == ["b/c", "good/a"]
