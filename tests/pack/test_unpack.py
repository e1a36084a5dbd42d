"""Unpacking: what was packed comes back as it was, and no archive can write anywhere else."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aj.base.errors import AjError, Refused
from aj.pack import archive, digest, tar, unpack, walk
from tests.pack.trees import Link, plan, plant


def made(folder: Path, body: bytes) -> tuple[Path, str]:
    """An archive of this body, and its sum."""
    path = folder / "x.tar.gz"
    path.write_bytes(gzip.compress(body + tar.ending(len(body)), 1))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def file(name: bytes, data: bytes = b"x") -> bytes:
    return tar.header(name, tar.FILE, size=len(data), mode=0o644) + data + tar.filling(len(data))


def folder(name: bytes) -> bytes:
    return tar.header(name + b"/", tar.FOLDER, mode=0o755)


def link(name: bytes, target: bytes) -> bytes:
    return tar.header(name, tar.LINK, mode=0o777, target=target)


@pytest.mark.rule("C-269", "C-189", "T18")
def test_T18_everything_comes_back(root: Path, tmp_path: Path, umask: Callable[[int], int]) -> None:
    plant(
        root,
        {
            "a.py": "1",
            "run": "#!",
            "empty/": "",
            "d/e/f": b"\0" * 100_000,
            "big": random.Random(1).randbytes(3_000_000),
            b"\xff\nodd": "name",
            "n" * 200: "long",
            "/".join(["deep" * 10] * 8): "deep",
            "zero": "",
            "l": Link("d/e"),
            "dangling": Link("gone"),
            "out": Link("/etc/passwd"),
            "up": Link("../../x"),
            "t" * 150: Link("u" * 150),
        },
    )
    (root / "run").chmod(0o755)
    umask(0o077)
    chosen = plan(root, strict_links=False)
    ref = archive.pack(walk.select(chosen), folder=tmp_path / "store")
    found = archive.find(tmp_path / "store", ref)
    assert found is not None
    target = tmp_path / "out"
    unpack.extract(found, ref.archive_sha256, target)
    assert digest.of(walk.select(plan(target, strict_links=False))) == ref.digest
    assert os.readlink(target / "out") == "/etc/passwd"
    assert (target / "run").stat().st_mode & 0o777 == 0o755
    assert (target / "a.py").stat().st_mode & 0o777 == 0o644
    assert (target / "empty").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code", "out", "store"]


@pytest.mark.rule("C-196")
def test_another_sum_unpacks_nothing(tmp_path: Path) -> None:
    path, _ = made(tmp_path, file(b"a"))
    with pytest.raises(AjError, match="is damaged: its SHA-256 is") as error:
        unpack.extract(path, "0" * 64, tmp_path / "out")
    assert error.value.hint is not None and error.value.hint.startswith(f"rm {path}")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.rule("C-190")
@pytest.mark.parametrize(
    "body",
    [
        file(b"../x"),
        file(b"/x"),
        file(b"a/../../x"),
        folder(b"a") + file(b"a/./x"),
        file(b"gone/x"),
        folder(b".."),
        link(b"l", b"..") + file(b"l/x"),
        link(b"l", b"/tmp") + folder(b"l/x"),
        folder(b"a") + link(b"a/l", b"/") + file(b"a/l/x"),
        tar.header(b"p", b"6", mode=0o644),
        tar.header(b"h", b"1", mode=0o644, target=b"/etc/passwd"),
        file(b""),
        file(b"../" * 60 + b"x"),
    ],
)
def test_nothing_is_written_elsewhere(tmp_path: Path, body: bytes) -> None:
    path, sha256 = made(tmp_path, folder(b"ok") + file(b"ok/x") + body)
    with pytest.raises(AjError) as error:
        unpack.extract(path, sha256, tmp_path / "out")
    assert error.value.code == "damaged-archive"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.rule("C-190")
@pytest.mark.parametrize(
    "body", [file(b"a") + file(b"a"), link(b"a", b"/tmp/x") + file(b"a"), folder(b"a") + file(b"a")]
)
def test_a_name_comes_once(tmp_path: Path, body: bytes) -> None:
    path, sha256 = made(tmp_path, body)
    with pytest.raises(AjError, match="File exists"):
        unpack.extract(path, sha256, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_a_target_that_is_there_is_left_alone(tmp_path: Path, there: str) -> None:
    path, sha256 = made(tmp_path, file(b"a"))
    target = tmp_path / "out"
    plant(tmp_path, {"out": Link("gone")} if there == "link" else {"out/x" if there == "folder" else "out": "mine"})
    with pytest.raises(Refused, match="is there already"):
        unpack.extract(path, sha256, target)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out", "x.tar.gz"]


def test_a_missing_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AjError, match=r"cannot unpack .*: No such file"):
        unpack.extract(tmp_path / "gone", "0" * 64, tmp_path / "out")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damage_that_the_sum_does_not_show_is_an_error_and_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tmp_path = tmp_path_factory.mktemp("damaged")
    body = bytearray(folder(b"d") + file(b"d/" + b"n" * 120, b"text" * 300) + link(b"l", b"d"))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    path, sha256 = made(tmp_path, bytes(body)[: data.draw(st.integers(0, len(body)))])
    try:
        unpack.extract(path, sha256, tmp_path / "out")
    except AjError:
        assert list(tmp_path.iterdir()) == [path]
    else:
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out", "x.tar.gz"]
