"""The digest: equal for equal code wherever and by whomever it is packed, different after any edit."""

from __future__ import annotations

import hashlib
import io
import os
import pwd
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aj
from aj.base.errors import UserError
from aj.pack import content, digest, tar, walk
from tests.pack.trees import Link, plan, plant

HOUSE = Path(aj.__file__).resolve().parents[1]


def of(root: Path, *patterns: str) -> str:
    return digest.of(walk.select(plan(root, *patterns)))


def plant_some(root: Path) -> Path:
    plant(
        root,
        {
            "a.py": "print(1)\n",
            "run.sh": "#!/bin/sh\n",
            "d/b": b"\0" * 3000,
            "empty/": "",
            "l": Link("d/b"),
            b"\xff": "odd",
            "big": random.Random(5).randbytes(content.PIECE + 4097),
            "n" * 120: "long",
        },
    )
    (root / "run.sh").chmod(0o755)
    return root


@pytest.mark.rule("C-191", "T07", "T19")
def test_the_digest_is_the_sum_of_a_tar(root: Path) -> None:
    plant_some(root)
    found = []
    for path in sorted([*os.walk(os.fsencode(root))], key=lambda step: step[0]):
        found += [path[0] + b"/" + name for name in (*path[1], *path[2])]
    parts = []
    for place in found:
        name = place[len(os.fsencode(root)) + 1 :]
        if os.path.islink(place):
            parts.append((name, tar.header(name, tar.LINK, mode=0o777, target=os.readlink(place))))
        elif os.path.isdir(place):
            parts.append((name + b"/", tar.header(name + b"/", tar.FOLDER, mode=0o755)))
        else:
            data = Path(os.fsdecode(place)).read_bytes()
            head = tar.header(name, tar.FILE, size=len(data), mode=0o755 if name == b"run.sh" else 0o644)
            parts.append((name, head + data + tar.filling(len(data))))
    body = b"".join(part for _, part in sorted(parts))
    assert of(root) == hashlib.sha256(body + tar.ending(len(body))).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(body + tar.ending(len(body)))) as archive:
        assert len(archive.getmembers()) == 9


def touch(root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)


def narrow(root: Path) -> None:
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o077)


def rewrite(root: Path) -> None:
    data = (root / "a.py").read_bytes()
    (root / "a.py").unlink()
    (root / "a.py").write_bytes(data)


@pytest.mark.rule("C-191", "T19")
@pytest.mark.parametrize("change", [touch, narrow, rewrite])
def test_T19_times_modes_of_others_and_rewriting_do_not_matter(root: Path, change: Callable[[Path], None]) -> None:
    before = of(plant_some(root))
    change(root)
    assert of(root) == before


@pytest.mark.rule("C-191", "T19")
def test_T19_a_copy_made_under_another_umask_is_the_same_code(
    root: Path, tmp_path: Path, umask: Callable[[int], int]
) -> None:
    before = of(plant_some(root))
    umask(0o077)
    shutil.copytree(root, tmp_path / "copy", symlinks=True, copy_function=shutil.copy)
    assert of(tmp_path / "copy") == before
    umask(0o000)
    assert of(plant_some(tmp_path / "again")) == before


@pytest.mark.rule("C-191", "C-189")
@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.py").chmod(0o744),
        lambda root: (root / "run.sh").chmod(0o655),
        lambda root: (root / "empty").rmdir(),
        lambda root: (root / "new").mkdir(),
        lambda root: (root / "a.py").rename(root / "b.py"),
        lambda root: ((root / "l").unlink(), (root / "l").symlink_to("d/./b")),
        lambda root: (root / "d/b").write_bytes(b"\0" * 3001),
    ],
)
def test_what_the_job_would_see_changes_the_digest(root: Path, change: Callable[[Path], object]) -> None:
    before = of(plant_some(root))
    change(root)
    assert of(root) != before


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant_some(tmp_path_factory.mktemp("edited"))


@pytest.mark.rule("T07", "C-191")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(["a.py", "d/b", "big", "run.sh"]), st.integers(0), st.integers(1, 255))
def test_T07_any_edit_of_one_byte_changes_the_digest(edited: Path, name: str, at: int, flip: int) -> None:
    whole = (edited / name).read_bytes()
    at %= len(whole)
    before = of(edited, ".*")
    try:
        (edited / name).write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        assert of(edited, ".*") != before
    finally:
        (edited / name).write_bytes(whole)
    assert of(edited, ".*") == before


@pytest.mark.rule("C-191")
def test_what_is_not_selected_does_not_count(root: Path) -> None:
    before = of(plant_some(root), "*.log")
    plant(root, {"x.log": "", "__pycache__/y": ""})
    assert of(root, "*.log") == before


def other_pythons() -> list[str]:
    """Other supported Pythons of this machine that start."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    found = []
    for minor in range(11, 15):
        name = f"python3.{minor}"
        places = [shutil.which(name), *sorted(home.glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))]
        works = (str(place) for place in places if place and answers(str(place)))
        found += [place for place in [next(works, None)] if place and minor != sys.version_info.minor]
    return found


def answers(python: str) -> bool:
    return subprocess.run([python, "-c", "import zlib"], capture_output=True, check=False).returncode == 0


PACKS = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from aj.model.code import CodePlan
from aj.pack import archive, unpack, walk
selection = walk.select(CodePlan(sys.argv[2]))
ref = archive.pack(selection, folder=Path(sys.argv[3]))
unpack.extract(archive.find(Path(sys.argv[3]), ref), ref.archive_sha256, Path(sys.argv[3]) / "out")
print(ref.digest)
"""


@pytest.mark.rule("C-191", "T18")
def test_T18_every_python_packs_the_same(root: Path, tmp_path: Path, programs: None) -> None:
    before = of(plant_some(root))
    pythons = other_pythons()
    if not pythons:
        pytest.skip("no other Python from 3.11 to 3.14 is here to compare with")
    for number, python in enumerate(pythons):
        folder = tmp_path / f"code{number}"
        words = [python, "-I", "-c", PACKS, str(HOUSE), str(root), str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == before, (python, done.stderr)
        assert of(folder / "out") == before


@pytest.mark.rule("C-191")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0, 1, 700, 5000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1]))))
def test_blocks_pass_everything_on_and_sum_what_counts(pieces: list[tuple[bool, int]]) -> None:
    passed: list[bytes] = []
    blocks = digest.Blocks(passed.append)
    everything, counted = b"", b""
    for number, (counts, size) in enumerate(pieces):
        piece = bytes([number % 251]) * size
        everything += piece
        if counts:
            counted += piece
            blocks.add([piece])
        else:
            blocks.add_apart(piece)
    assert blocks.finish() == hashlib.sha256(counted + tar.ending(len(counted))).hexdigest()
    assert b"".join(passed) == everything + tar.ending(len(everything))
    assert all(len(block) == digest.BLOCK for block in passed[:-1])


@pytest.mark.rule("C-193")
def test_an_unreadable_tree_has_no_digest(root: Path) -> None:
    selection = walk.select(plan(plant_some(root)))
    (root / "a.py").unlink()
    with pytest.raises(UserError, match=r"`a\.py` changes while it is read"):
        digest.of(selection)
