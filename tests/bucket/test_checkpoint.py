"""A checkpoint is always as the folder was at one moment, wherever its writer was killed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aj.base.errors import AjError, Refused
from aj.bucket import checkpoint as checkpoints
from aj.bucket.checkpoint import Checkpoint
from aj.bucket.digest import Moving
from aj.bucket.scope import Scope
from aj.bucket.storage import Bytes, Storage, objects
from aj.bucket.transfer import Pace


def tree(root: Path) -> dict[str, str]:
    """What is in a folder: text of files, and where links lead."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_text()
        else:
            found[name] = "/"
    return found


def write(root: Path, files: dict[str, str]) -> None:
    for name, words in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "checkpoint"
    made.mkdir()
    return made


@pytest.mark.rule("BK-04", "BK-05", "DA-03")
def test_a_folder_comes_back_as_it_was(bucket: Storage, root: Path, tmp_path: Path, pace: Pace) -> None:
    write(root, {"state.json": "{}", "step 10/model.pt": "x" * 10, "empty": ""})
    (root / "logs").mkdir()
    (root / "latest").symlink_to("step 10")
    (root / "state.json").chmod(0o755)
    view = Scope(bucket, "job-1/")
    assert Checkpoint(view, root).save(pace).is_new
    other = tmp_path / "other"
    found = Checkpoint(view, other).restore(pace)
    assert found is not None and found.number == 1
    assert tree(other) == tree(root)
    assert (other / "state.json").stat().st_mode & 0o777 == 0o755
    assert (other / "state.json").stat().st_mtime_ns == (root / "state.json").stat().st_mtime_ns


def test_a_deleted_file_does_not_come_back(bucket: Storage, root: Path, tmp_path: Path, pace: Pace) -> None:
    saving = Checkpoint(bucket, root)
    write(root, {"old.pt": "1", "state": "a"})
    saving.save(pace)
    (root / "old.pt").unlink()
    write(root, {"new.pt": "2"})
    saving.save(pace)
    write(tmp_path / "other", {"stray": "from an earlier start"})
    Checkpoint(bucket, tmp_path / "other").restore(pace)
    assert tree(tmp_path / "other") == {"new.pt": "2", "state": "a"}


def test_only_the_last_few_are_kept_and_nothing_else_stays(bucket: Storage, root: Path, pace: Pace) -> None:
    saving = Checkpoint(bucket, root, keep=2)
    for step in range(5):
        write(root, {"state": f"step {step}", "same": "always"})
        assert saving.save(pace).checkpoint.number == step + 1
    names = [one.name for one in objects(bucket)]
    assert sum(name.startswith("manifests/") for name in names) == 2
    assert sum(name.startswith("blobs/") for name in names) == 3  # two states and what is always the same
    assert Checkpoint(bucket, root, keep=2).kept == 0
    looked = Checkpoint(bucket, root)
    looked.look(pace)
    assert looked.kept == 2


def test_what_did_not_change_is_not_sent_again(bucket: Storage, root: Path, pace: Pace) -> None:
    write(root, {"a": "1" * 100, "b": "2" * 100})
    Checkpoint(bucket, root).save(pace)
    again = Checkpoint(bucket, root)
    before = {one.name: one.etag for one in objects(bucket)}
    assert not again.save(pace).is_new
    assert {one.name: one.etag for one in objects(bucket)} == before


def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    bucket: Storage, root: Path, tmp_path: Path, pace: Pace
) -> None:
    saving = Checkpoint(bucket, root)
    write(root, {"state": "one"})
    saving.save(pace)
    write(root, {"state": "two!"})
    newest = saving.save(pace).checkpoint
    bucket.put(f"blobs/{newest.files[0].sha256}", Bytes(b"xxxx"))
    found = Checkpoint(bucket, tmp_path / "other").restore(pace)
    assert found is not None and found.number == 1
    assert tree(tmp_path / "other") == {"state": "one"}


def test_when_none_is_whole_nothing_is_started_with_less(bucket: Storage, root: Path, pace: Pace) -> None:
    write(root, {"state": "one"})
    made = Checkpoint(bucket, root).save(pace).checkpoint
    bucket.remove(f"blobs/{made.files[0].sha256}")
    with pytest.raises(AjError) as damage:
        Checkpoint(bucket, root).restore(pace)
    assert damage.value.code == "damaged-checkpoint"


def test_a_manifest_that_leads_out_of_the_folder_is_damaged(bucket: Storage, root: Path, pace: Pace) -> None:
    write(root, {"state": "one"})
    Checkpoint(bucket, root).save(pace)
    name = next(one.name for one in objects(bucket, "manifests/"))
    found = json.loads(bucket.read(name, 0, 10_000))
    found["files"][0]["name"] = "../../outside"
    bucket.put(name, Bytes(json.dumps(found).encode()))
    with pytest.raises(AjError) as damage:
        Checkpoint(bucket, root).restore(pace)
    assert damage.value.code == "damaged-checkpoint"
    assert not (root.parent.parent / "outside").exists()


def test_a_second_writer_is_refused_and_a_later_start_fences_an_earlier_one(
    bucket: Storage, root: Path, pace: Pace
) -> None:
    write(root, {"state": "one"})
    early, late = Checkpoint(bucket, root, attempt=1), Checkpoint(bucket, root, attempt=2)
    early.save(pace)
    late.look(pace)
    write(root, {"state": "two"})
    late.save(pace)
    write(root, {"state": "three"})
    with pytest.raises(Refused) as refused:
        early.save(pace)
    assert refused.value.code == "other-writer"
    with pytest.raises(Refused) as fenced:
        early.save(pace)
    assert fenced.value.code == "fenced"
    assert late.save(pace).checkpoint.number == 3


def test_a_folder_in_motion_is_never_stored_half(
    bucket: Storage, root: Path, pace: Pace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files that belong together change between the moments at which each is read."""
    write(root, {"model": "epoch 0", "state": "epoch 0"})
    saving = Checkpoint(bucket, root)
    saving.save(pace)
    really, count = checkpoints.scan.scan, iter(range(1, 100))

    def busy(folder: Path) -> checkpoints.Tree:
        found = really(folder)
        step = next(count)
        if step <= moving:
            write(root, {"model": f"epoch {step}", "state": f"epoch {step}"})
        return found

    monkeypatch.setattr(checkpoints.scan, "scan", busy)
    moving = 3  # still when the second try ends
    saved = saving.save(pace)
    assert saved.is_new and saved.checkpoint.number == 2
    moving = 1000
    with pytest.raises(Moving):
        saving.save(pace)
    monkeypatch.undo()
    Checkpoint(bucket, root).restore(pace)
    assert tree(root) == {"model": "epoch 3", "state": "epoch 3"}


def test_a_folder_that_is_never_still_is_taken_file_by_file_in_the_end(
    bucket: Storage, root: Path, pace: Pace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"state": "done"})
    saving = Checkpoint(bucket, root)
    really = checkpoints.scan.scan

    def busy(folder: Path) -> checkpoints.Tree:
        found = really(folder)
        with (root / "events.log").open("a") as out:
            out.write("a line more\n")
        return found

    monkeypatch.setattr(checkpoints.scan, "scan", busy)
    for _ in range(checkpoints.PATIENCE):
        with pytest.raises(Moving):
            saving.save(pace)
    saved = saving.save(pace)
    assert saved.by_file and {entry.name for entry in saved.checkpoint.files} == {"state", "events.log"}
