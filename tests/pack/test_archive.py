"""The archive: named by its content, kept and reused, whole or absent, within its limit and a flat memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import subprocess
import tarfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from aj.base.errors import AjError, Refused, UserError
from aj.model.code import CodeRef
from aj.pack import archive, digest, walk
from aj.pack.archive import Generated
from tests.conftest import MovedClock
from tests.pack.trees import Link, opened, plan, plant

RUNNER: Generated = {b"aj_runner.sh": (b"#!/bin/bash\n", 0o755)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "state" / "code"


@pytest.fixture
def tree(root: Path) -> Path:
    plant(root, {"b.py": "print(1)\n", "d/x": "2", "z": "", "l": Link("d/x"), "empty/": "", "d/y.log": "no"})
    (root / "z").chmod(0o700)
    return root


def pack(tree: Path, store: Path, generated: Generated = archive.NOTHING, threads: int = 2, **more: object) -> CodeRef:
    return archive.pack(walk.select(plan(tree, "*.log", **more)), folder=store, generated=generated, threads=threads)


def path_of(store: Path, ref: CodeRef) -> Path:
    found = archive.find(store, ref)
    assert found is not None
    return found


def members(store: Path, ref: CodeRef) -> list[tarfile.TarInfo]:
    with tarfile.open(path_of(store, ref)) as found:
        return found.getmembers()


@pytest.mark.rule("C-189", "C-191", "C-192")
def test_the_archive_is_named_by_its_digest_and_its_sum_stands_beside(tree: Path, store: Path) -> None:
    ref = pack(tree, store)
    path = store / f"{ref.digest}.tar.gz"
    assert path_of(store, ref) == path
    data = path.read_bytes()
    assert ref.archive_sha256 == hashlib.sha256(data).hexdigest()
    assert ref.archive_bytes == len(data)
    assert (ref.files, ref.bytes) == (3, 10)
    assert (
        ref.digest == hashlib.sha256(gzip.decompress(data)).hexdigest() == digest.of(walk.select(plan(tree, "*.log")))
    )
    note = json.loads((store / f"{ref.digest}.json").read_bytes())
    assert note["archive_sha256"] == ref.archive_sha256
    assert sorted(file.name for file in store.iterdir()) == [f"{ref.digest}.json", f"{ref.digest}.tar.gz"]
    assert {file.stat().st_mode & 0o777 for file in store.iterdir()} == {0o600}
    assert store.stat().st_mode & 0o777 == 0o700


@pytest.mark.rule("C-189", "C-186")
def test_members_are_sorted_and_without_traces_of_this_machine(tree: Path, store: Path) -> None:
    found = members(store, pack(tree, store))
    assert [member.name for member in found] == ["b.py", "d", "d/x", "empty", "l", "z"]
    assert [oct(member.mode) for member in found] == ["0o644", "0o755", "0o644", "0o755", "0o777", "0o755"]
    assert {(member.uid, member.gid, member.uname, member.gname, member.mtime) for member in found} == {
        (0, 0, "", "", 946684800)
    }


@pytest.mark.rule("C-190", "C-191")
def test_generated_files_are_sorted_in_and_do_not_count(tree: Path, store: Path) -> None:
    plain = pack(tree, store)
    generated = {**RUNNER, b".ssh/config": (b"Host x\n", 0o600), b"zz/a/b": (b"", 0o644)}
    ref = pack(tree, store, generated)
    found = members(store, ref)
    assert [member.name for member in found] == [
        ".ssh", ".ssh/config", "aj_runner.sh", "b.py", "d", "d/x", "empty", "l", "z", "zz", "zz/a", "zz/a/b"
    ]  # fmt: skip
    assert [member.name for member in members(store, pack(tree, store, {b"d/new": (b"", 0o644)}))].count("d") == 1
    modes = {member.name: member.mode for member in found}
    assert (modes["aj_runner.sh"], modes[".ssh/config"]) == (0o755, 0o600)
    assert (ref.digest, ref.files, ref.bytes) == (plain.digest, plain.files, plain.bytes)
    assert ref.archive_sha256 != plain.archive_sha256
    assert path_of(store, ref) != path_of(store, plain)
    assert pack(tree, store, RUNNER) not in (ref, plain)
    assert pack(tree, store, generated) == ref
    assert pack(tree, store) == plain


@pytest.mark.rule("C-190")
@pytest.mark.parametrize("name", [b"../x", b"/x", b"", b"a//b", b"a/./b", b"a/"])
def test_a_generated_name_that_leads_elsewhere_cannot_occur(tree: Path, store: Path, name: bytes) -> None:
    with pytest.raises(UserError, match="is no name for a file of the archive"):
        pack(tree, store, {name: (b"", 0o644)})


@pytest.mark.rule("C-187", "C-190")
def test_a_generated_name_that_is_in_the_code_is_refused(tree: Path, store: Path) -> None:
    plant(tree, {"aj_runner.sh": ""})
    with pytest.raises(UserError, match=r"`aj_runner\.sh` is in the code") as error:
        pack(tree, store, RUNNER)
    assert error.value.hint == "rename it, or add `/aj_runner.sh` to .codeignore"


@pytest.mark.rule("C-191", "T19")
def test_threads_and_repetition_do_not_change_a_byte(tree: Path, tmp_path: Path) -> None:
    plant(tree, {f"f{number}": random.Random(number).randbytes(90_000) + b"text " * 50_000 for number in range(10)})
    refs = [pack(tree, tmp_path / f"store{threads}", threads=threads) for threads in (1, 2, 4)]
    assert refs[0] == refs[1] == refs[2]


@pytest.mark.rule("C-192")
def test_the_same_code_keeps_its_bytes(tree: Path, store: Path) -> None:
    ref = pack(tree, store)
    path = path_of(store, ref)
    before = path.stat()
    os.utime(tree / "b.py", (5, 5))
    assert pack(tree, store) == ref
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.rule("C-192")
@pytest.mark.parametrize("damage", ["truncated", "no note", "torn note", "gone"])
def test_an_archive_that_is_not_whole_is_made_again(tree: Path, store: Path, damage: str) -> None:
    ref = pack(tree, store)
    path, note = store / f"{ref.digest}.tar.gz", store / f"{ref.digest}.json"
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "gone":
        path.unlink()
    else:
        note.write_bytes(b'{"digest":') if damage == "torn note" else note.unlink()
    assert archive.find(store, ref) is None
    assert pack(tree, store) == ref
    assert hashlib.sha256(path_of(store, ref).read_bytes()).hexdigest() == ref.archive_sha256


@pytest.mark.rule("C-271")
def test_nothing_selected_is_refused(tree: Path, store: Path) -> None:
    with pytest.raises(UserError, match="no files selected"):
        archive.pack(walk.select(plan(tree, "*")), folder=store)
    assert not store.exists()


@pytest.mark.rule("C-272", "C-187", "T08", "T17")
def test_T08_an_archive_above_the_limit_is_refused_with_culprits_and_the_line_to_add(tree: Path, store: Path) -> None:
    plant(tree, {"data/big one": random.Random(1).randbytes(5 << 20), "data/next": b"x" * 999, ".codeignore": ""})
    with pytest.raises(UserError) as error:
        pack(tree, store, max_bytes=1 << 20)
    message = error.value.message
    assert "above the limit of 1.0 MiB (`code.max_bytes`): 6 files, 5.0 MiB unpacked" in message
    assert "`data/big one` 5.0 MiB, `data/next` 999 B, `b.py` 9 B, `d/x` 1 B" in message
    assert error.value.hint == "add `/data/big one` to .codeignore"
    assert error.value.exit_code == 2
    assert list(store.iterdir()) == []
    ref = pack(tree, store, max_bytes=6 << 20)
    assert pack(tree, store, max_bytes=ref.archive_bytes) == ref
    with pytest.raises(UserError, match="above the limit"):
        pack(tree, store, max_bytes=ref.archive_bytes - 1)


@pytest.mark.rule("C-272", "C-193")
def test_an_archive_that_is_there_already_is_held_against_the_limit_too(
    tree: Path, store: Path, tmp_path: Path, later: MovedClock
) -> None:
    chosen = plan(tree)
    ref = archive.pack(walk.select(chosen, tmp_path / "cache", clock=later), folder=store)
    lower = replace(chosen, max_bytes=ref.archive_bytes - 1)
    with opened(tree) as read, pytest.raises(UserError, match="above the limit"):
        archive.pack(walk.select(lower, tmp_path / "cache", clock=later), folder=store)
    assert read == []


@pytest.mark.rule("T17")
def test_T17_without_a_limit_there_is_none(tree: Path, store: Path) -> None:
    plant(tree, {"big": random.Random(1).randbytes(5 << 20)})
    assert pack(tree, store).archive_bytes > 5 << 20


@pytest.mark.rule("C-192")
def test_a_folder_that_cannot_be_written_is_named(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AjError, match="cannot write"):
        pack(tree, tmp_path / "file" / "code")


@pytest.mark.rule("C-192")
def test_a_full_disk_leaves_no_half_archive(tree: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    store.mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AjError, match="No space left"):
        pack(tree, store)
    monkeypatch.undo()
    assert list(store.iterdir()) == []
    assert pack(tree, store).files == 3


@pytest.mark.rule("A-115")
def test_code_that_may_not_fit_is_refused_before_a_byte_is_written(
    tree: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.mkdir(parents=True)
    real = os.statvfs(store)
    small = os.statvfs_result((*real[:4], 0, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda folder: small)
    with pytest.raises(Refused, match=r"may not fit into .*: 0 B are free") as found:
        pack(tree, store)
    assert found.value.code == "no-space"
    monkeypatch.undo()
    assert list(store.iterdir()) == []
    assert pack(tree, store).files == 3


@pytest.mark.rule("C-192")
def test_what_a_crash_left_is_swept_a_day_later(tree: Path, store: Path) -> None:
    store.mkdir(parents=True)
    old, new = store / ".pack.1.aa.part", store / ".pack.2.bb.part"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (1, 1))
    pack(tree, store)
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.rule("C-192")
@pytest.mark.parametrize("kind", ["zeros", "noise"])
def test_memory_does_not_grow_with_the_tree(root: Path, store: Path, kind: str) -> None:
    size = 64 << 20
    with (root / "big").open("wb") as out:
        if kind == "zeros":
            out.truncate(size)
        else:
            piece = random.Random(4).randbytes(1 << 20)
            for _ in range(size >> 20):
                out.write(piece)
    tracemalloc.start()
    try:
        ref = archive.pack(walk.select(plan(root)), folder=store, threads=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ref.bytes == size
    assert peak < 24 << 20, f"{peak >> 20} MiB"


@pytest.mark.rule("C-189", "C-269")
def test_the_tar_program_lists_and_unpacks_it(root: Path, tmp_path: Path, store: Path, programs: None) -> None:
    odd = {
        b"new\nline": "1",
        b"-rf": "2",
        b"\xff\xfe": "3",
        b'a"b;c': "4",
        b"deep/" * 40 + b"end": "5",
        "l": Link("-rf"),
    }
    plant(root, odd)
    path = path_of(store, pack(root, store))
    listed = subprocess.run(["tar", "tzf", path], capture_output=True, check=True)
    assert len(listed.stdout.splitlines()) == len(odd) + 40
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "xzf", path, "-C", tmp_path / "out"], capture_output=True, check=True)
    assert digest.of(walk.select(plan(tmp_path / "out"))) == digest.of(walk.select(plan(root)))


@pytest.mark.rule("C-191")
def test_python_reads_the_gzip_to_its_end(tree: Path, store: Path) -> None:
    plant(tree, {"big": b"word " * 600_000})
    ref = pack(tree, store)
    plain = gzip.decompress(path_of(store, ref).read_bytes())
    assert len(plain) % 10_240 == 0
    with tarfile.open(fileobj=io.BytesIO(plain)) as found:
        file = found.extractfile("big")
        assert file is not None and file.read() == b"word " * 600_000


@pytest.mark.rule("A-12B", "C-176", "C-189")
@pytest.mark.parametrize("generated", [{}, {b"aj_runner.sh": (b"run\n", 0o755)}])
def test_an_archive_can_be_weighed_without_being_made(tree: Path, store: Path, generated: Generated) -> None:
    weighed = archive.weigh(walk.select(plan(tree)), folder=store, generated=generated)
    assert not store.exists()
    packed = archive.pack(walk.select(plan(tree)), folder=store, generated=generated)
    assert weighed == packed
    (store / f"{packed.digest}.tar.gz").unlink(missing_ok=True)
    assert archive.weigh(walk.select(plan(tree)), folder=store, generated=generated) == packed
