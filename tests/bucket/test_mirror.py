"""Folders up and down: only what changed goes, what broke off goes on, and nothing leads out of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aj.base.errors import AjError, Refused, Unavailable, UserError
from aj.bucket import fetch, mirror, scan
from aj.bucket.checkpoint import Checkpoint
from aj.bucket.fetch import fetch as bring
from aj.bucket.folder import Folder
from aj.bucket.mirror import Upload
from aj.bucket.storage import Bytes, Storage, objects
from aj.bucket.transfer import Pace, Progress, Stopped, carry

KIB = 1 << 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    return made


@pytest.mark.rule("DA-02", "BK-03")
def test_only_what_changed_goes_up_also_from_another_process(bucket: Storage, root: Path, tmp_path: Path) -> None:
    (root / "a").write_text("1")
    (root / "d").mkdir()
    (root / "d/b").write_text("2")
    notes = tmp_path / "notes.json"
    first = Upload(bucket, root, notes).round(Pace())
    assert (first.files, first.skipped) == (2, 0)
    (root / "a").write_text("changed")
    (root / "d/b").unlink()
    second = Upload(bucket, root, notes).round(Pace())
    assert (second.files, second.skipped) == (1, 0)
    assert {one.name for one in objects(bucket)} == {"a", "d/b"}
    looked = Upload(bucket, root)
    looked.look(Pace())
    assert looked.round(Pace()).files == 0


def test_what_cannot_go_up_is_named_and_keeps_nothing_else_back(tmp_path: Path, root: Path) -> None:
    made = Folder(tmp_path / "buckets", "results")
    made.create()
    (root / "good").write_text("1")
    (root / "inside").symlink_to("good")
    (root / "outside").symlink_to("/etc/hostname")
    (root / "bad\nname").write_text("2")
    os.mkfifo(root / "pipe")
    done = Upload(made, root).round(Pace())
    assert {one.name for one in objects(made)} == {"good", "inside"}
    assert len(done.left) == 3 and "`outside` leads out" in (done.problem or "")
    assert "`pipe` is no file" in (done.problem or "")


@pytest.mark.rule("DA-02")
def test_a_link_that_does_not_lead_to_a_file_counts_as_left_out(tmp_path: Path, root: Path) -> None:
    made, linked = Folder(tmp_path / "buckets", "results"), tmp_path / "linked"
    made.create()
    linked.symlink_to(root)  # a folder that is reached by a link itself
    (root / "d").mkdir()
    (root / "d/file").write_text("1")
    for name, target in (("folder", "d"), ("nowhere", "gone"), ("round", "round"), ("good", "d/file")):
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    (root / "topipe").symlink_to("pipe")
    done = Upload(made, linked).round(Pace())
    assert {one.name for one in objects(made)} == {"d/file", "good"} and not done.failed
    words = "; ".join(done.left)
    for said in (
        "`folder` is a link to a folder",
        "`nowhere` is a link that",
        "`round` is",
        "`topipe` is a link to what",
    ):
        assert said in words


def test_a_file_that_grows_while_it_goes_up_goes_again(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Folder(tmp_path / "buckets", "results")
    made.create()
    (root / "log").write_text("one\n")
    upload, really = Upload(made, root), Folder.put

    def put(self: Folder, *words: object) -> object:
        with (root / "log").open("a") as out:
            out.write("more\n")
        return really(self, *words)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", put)
        assert upload.round(Pace()).moving == ("log",)
    assert upload.round(Pace()).files == 1
    assert made.read("log", 0, 100) == (root / "log").read_bytes()


@pytest.mark.rule("BK-02", "DA-01")
def test_an_input_is_what_the_bucket_holds_and_nothing_else(bucket: Storage, root: Path, tmp_path: Path) -> None:
    for name in ("a", "d/b", ".aj/logs/x/1/rank0.out"):
        bucket.put(name, Bytes(name.encode()))
    (root / "stray").write_text("x")
    (root / "old").mkdir()
    (root / "old/stray").write_text("x")
    notes = tmp_path / "notes.json"
    first = mirror.download(bucket, root, Pace(), notes=notes, exact=True)
    assert (first.files, first.skipped) == (2, 0)
    assert scan.scan(root).folders == ("d",)
    bucket.put("a", Bytes(b"A"))
    bucket.remove("d/b")
    second = mirror.download(bucket, root, Pace(), notes=notes, exact=True)
    assert (second.files, second.skipped) == (1, 0)
    assert [file.name for file in scan.scan(root).files] == ["a"]
    assert mirror.download(bucket, root, Pace(), notes=notes, exact=True).files == 0


def test_a_bucket_that_no_folder_can_hold_is_refused(root: Path) -> None:
    found = [mirror.Stored(name, 1, "e", 0.0) for name in ("a/b/c", "a")]
    with pytest.raises(UserError, match="no folder can hold both"):
        mirror._check_places(found)


@pytest.mark.parametrize("changes", [False, True])
def test_a_large_download_that_broke_goes_on_unless_the_object_changed(
    bucket: Storage, root: Path, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    data = os.urandom(20 * KIB)
    bucket.put("large", Bytes(data))
    asked: list[int] = []
    really, kind = type(bucket).read, type(bucket)

    def read(self: Storage, name: str, at: int, count: int, etag: str | None = None) -> bytes:
        asked.append(at)
        if at == 16 * KIB and len(asked) <= 3:
            raise AjError("the line broke")
        return really(self, name, at, count, etag)

    monkeypatch.setattr(kind, "read", read)
    monkeypatch.setattr(fetch, "AT_ONCE", 1)
    monkeypatch.setattr(fetch, "RANGE", 8 * KIB)
    with pytest.raises(AjError, match="broke"):
        bring(bucket, bucket.head("large"), root / "large", Pace(), Progress())
    assert asked == [0, 8 * KIB, 16 * KIB] and not (root / "large").exists()
    if changes:
        data = os.urandom(20 * KIB)
        bucket.put("large", Bytes(data))
    progress = Progress()
    bring(bucket, bucket.head("large"), root / "large", Pace(), progress)
    assert asked[3:] == ([0, 8 * KIB, 16 * KIB] if changes else [16 * KIB])
    assert (root / "large").read_bytes() == data and progress.bytes == len(data)
    assert [path.name for path in root.iterdir()] == ["large"]


def test_an_object_that_changes_under_a_download_is_no_mixture(bucket: Storage, root: Path) -> None:
    bucket.put("a", Bytes(b"one"))
    found = bucket.head("a")
    bucket.put("a", Bytes(b"two"))
    with pytest.raises(Refused):
        bring(bucket, found, root / "a", Pace(), Progress())
    assert not (root / "a").exists()


@pytest.mark.rule("BK-02", "DA-01", "DA-02")
def test_names_that_begin_alike_come_at_once_and_each_file_has_its_own_bytes(tmp_path: Path, root: Path) -> None:
    made, long = Folder(tmp_path / "buckets", "data"), "x" * 230
    made.create()
    names = [f"{long}{number}" for number in range(8)] + ["\u20ac" * 84, "\u20ac" * 83 + "\u00e9"]
    for name in names:
        made.put(name, Bytes(f"{name[-3:]}{'.' * KIB}"[:KIB].encode()))
    assert len({fetch.part_of(root / name).name for name in names}) == len(names)
    for _ in range(2):
        brought = mirror.download(made, root, Pace(), notes=tmp_path / "notes")
        assert brought.files + brought.skipped == len(names)
        assert all((root / name).read_bytes() == made.read(name, 0, 2 * KIB) for name in names)
    assert sorted(os.listdir(root)) == sorted(names) and brought.skipped == len(names)


@pytest.mark.rule("BK-05")
def test_a_checkpoint_with_long_names_of_many_bytes_comes_back(tmp_path: Path, root: Path) -> None:
    made, back = Folder(tmp_path / "buckets", "models"), tmp_path / "back"
    made.create()
    names = ["\u20ac" * 84, "y" * 250 + "1", "y" * 250 + "2"]
    for name in names:
        (root / name).write_text(f"of {name[-1]}")
    Checkpoint(made, root).save(Pace())
    assert Checkpoint(made, back).restore(Pace()) is not None
    assert {path.name: path.read_text() for path in back.iterdir()} == {name: f"of {name[-1]}" for name in names}


@pytest.mark.rule("BK-02")
def test_a_download_trusts_no_file_that_it_did_not_put_there(tmp_path: Path, root: Path) -> None:
    made, notes = Folder(tmp_path / "buckets", "data"), tmp_path / "notes"
    made.create()
    for name in ("a", "b", "c"):
        made.put(name, Bytes(name.encode()))
    (root / "a").write_text("x")  # of the size and time of the object, and still another file
    os.utime(root / "a", ns=(0, int(made.head("a").stamp or 0)))
    assert mirror.download(made, root, Pace(), notes=notes).files == 3
    (tmp_path / "other").write_text("x")
    os.utime(tmp_path / "other", ns=(0, int(made.head("c").stamp or 0)))
    os.replace(tmp_path / "other", root / "c")
    assert mirror.download(made, root, Pace(), notes=notes).skipped == 2
    assert (root / "a").read_text() == "a" and (root / "c").read_text() == "c"


def test_a_download_that_fails_notes_only_what_it_put_there(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, notes = Folder(tmp_path / "buckets", "data"), tmp_path / "notes"
    made.create()
    for name in ("a", "b", "c"):
        made.put(name, Bytes(name.encode()))
    really = Folder.read

    def read(self: Folder, name: str, *words: object) -> bytes:
        if name == "b":
            raise AjError("the disk broke")
        return really(self, name, *words)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "read", read)
        with pytest.raises(AjError, match="broke"):
            mirror.download(made, root, Pace(), notes=notes)
    with notes.open("a") as out:
        out.write('["b", "torn')  # as a kill leaves it
    assert mirror.download(made, root, Pace(), notes=notes).skipped == 2
    assert (root / "b").read_text() == "b"


def test_two_downloads_of_one_file_do_not_share_its_part(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Folder(tmp_path / "buckets", "data")
    made.create()
    made.put("a", Bytes(b"one"))
    (tmp_path / "linked").symlink_to(root)
    refused: list[str] = []
    really = Folder.read

    def read(self: Folder, *words: object) -> bytes:
        with pytest.raises(Refused, match="another download") as busy:
            bring(made, made.head("a"), tmp_path / "linked/a", Pace(), Progress())
        refused.append(busy.value.code)
        return really(self, *words)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "read", read)
        bring(made, made.head("a"), root / "a", Pace(), Progress())
    assert refused == ["busy"] and (root / "a").read_bytes() == b"one"
    bring(made, made.head("a"), root / "a", Pace(), Progress())
    assert os.listdir(root) == ["a"]


def test_what_a_broken_download_left_is_no_file_to_upload(tmp_path: Path, root: Path) -> None:
    made = Folder(tmp_path / "buckets", "results")
    made.create()
    fetch.part_of(root / "a").write_text("half")
    (root / ".mine.aj-part").write_text("a name like it")
    done = Upload(made, root).round(Pace())
    assert [one.name for one in objects(made)] == [".mine.aj-part"]
    assert len(done.left) == 1 and "download that broke off" in done.left[0]


@pytest.mark.rule("BK-02")
def test_an_exact_download_keeps_the_parts_of_its_objects_and_no_others(tmp_path: Path, root: Path) -> None:
    made = Folder(tmp_path / "buckets", "data")
    made.create()
    made.put("d/a", Bytes(b"1"))
    (root / "d").mkdir()
    mine, gone = fetch.part_of(root / "d/a"), fetch.part_of(root / "d/gone")
    for path in (mine, gone, root / ".old.aj-part", gone.with_name(f"{gone.name}.json")):
        path.write_text("half")
    mirror._drop_others(root, {"d/a"})
    assert [path.relative_to(root) for path in root.rglob("*")] == [Path("d"), mine.relative_to(root)]
    mirror.download(made, root, Pace(), notes=tmp_path / "notes", exact=True)
    assert os.listdir(root / "d") == ["a"] and (root / "d/a").read_text() == "1"


def test_what_is_no_file_is_not_opened_as_one(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("/etc/hostname")
    for name, words in (("pipe", "no regular file"), ("link", "links are not followed"), (".", "no regular file")):
        with pytest.raises(OSError, match=words):
            scan.Opened(root, name)


def test_a_damaged_note_only_costs_the_transfer(tmp_path: Path, root: Path) -> None:
    made = Folder(tmp_path / "buckets", "results")
    made.create()
    (root / "a").write_text("1")
    notes = tmp_path / "notes.json"
    for damage in ("{", json.dumps(["a"]), json.dumps({"a": "x"})):
        notes.write_text(damage)
        assert Upload(made, root, notes).round(Pace()).files == 1


def test_many_at_once_are_tried_again_and_told_apart(pace: Pace) -> None:
    tries: dict[int, int] = {}

    def act(number: int) -> int:
        tries[number] = tries.get(number, 0) + 1
        if number == 3 and tries[3] < 3:
            raise Unavailable("busy")
        if number == 5:
            raise AjError("never")
        return number

    done = carry(range(8), act, pace)
    assert sorted(done.done) == [0, 1, 2, 3, 4, 6, 7] and tries[3] == 3
    assert [(one.part, one.error.message) for one in done.failed] == [(5, "never")]
    with pytest.raises(AjError, match="never"):
        done.strictly()
    pace.stop.set()
    with pytest.raises(Stopped):
        carry(range(3), act, pace)
