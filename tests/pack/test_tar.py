"""The tar format: what Python and the tar program read back, names of all lengths, and bytes that never change."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.pack import tar

NAME = st.binary(min_size=1, max_size=120).filter(
    lambda name: name not in (b".", b"..") and not set(name) & set(b"/\0")
)
PATH = st.lists(NAME, min_size=1, max_size=4).map(b"/".join)


def member(path: bytes, kind: bytes = tar.FILE, data: bytes = b"", target: bytes = b"") -> bytes:
    name = path + b"/" if kind == tar.FOLDER else path
    head = tar.header(name, kind, size=len(data), mode=tar.MODES[kind], target=target)
    return head + data + tar.filling(len(data))


def whole(*members: bytes) -> bytes:
    body = b"".join(members)
    return body + tar.ending(len(body))


def read(data: bytes) -> list[tarfile.TarInfo]:
    return tarfile.open(fileobj=io.BytesIO(data)).getmembers()


def raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


@pytest.mark.rule("C-189", "C-269")
@settings(max_examples=80, deadline=None)
@given(PATH, st.binary(max_size=1500), st.binary(min_size=1, max_size=250).filter(lambda name: 0 not in name))
def test_python_reads_back_what_was_written(path: bytes, data: bytes, target: bytes) -> None:
    archive = whole(member(path, data=data), member(path, tar.FOLDER), member(path, tar.LINK, target=target))
    assert len(archive) % tar.RECORD == 0
    file, folder, link = read(archive)
    assert (raw(file.name), raw(folder.name), raw(link.name)) == (path, path, path)
    assert (file.size, file.isreg(), folder.isdir(), link.issym()) == (len(data), True, True, True)
    assert raw(link.linkname) == target
    assert [entry.mode for entry in (file, folder, link)] == [0o644, 0o755, 0o777]
    assert {(entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime) for entry in (file, folder, link)} == {
        (0, 0, "", "", 946684800)
    }


@pytest.mark.rule("C-189")
@pytest.mark.parametrize("length", [1, 99, 100, 101, 155, 156, 254, 255, 256, 257, 300])
@pytest.mark.parametrize("kind", [tar.FILE, tar.FOLDER])
def test_an_extended_header_stands_only_where_a_name_does_not_fit(length: int, kind: bytes) -> None:
    flat = b"n" * (length - (kind == tar.FOLDER))
    if flat:
        assert (b"PaxHeader" in member(flat, kind)) == (length > 100)
    halves = (b"d" * 100 + b"/" + b"n" * 300)[: length - (kind == tar.FOLDER)]
    if length > 101 + (kind == tar.FOLDER):
        assert (b"PaxHeader" in member(halves, kind)) == (len(halves) + (kind == tar.FOLDER) - 101 > 100)
        assert raw(read(whole(member(halves, kind)))[0].name) == halves


@pytest.mark.rule("C-189")
@pytest.mark.parametrize("length", range(984, 1000))
def test_the_length_of_a_record_counts_its_own_digits(length: int) -> None:
    path = (b"d" * 200 + b"/") * 4
    path += b"n" * (length - len(path))
    assert raw(read(whole(member(path)))[0].name) == path


@pytest.mark.rule("C-189")
def test_sizes_above_what_fits_have_an_extended_header() -> None:
    head = tar.header(b"big", tar.FILE, size=8**11, mode=0o644)
    assert tarfile.TarInfo.frombuf(head[1024:1536], "utf-8", "strict").size == 8**11 - 1
    assert b"size=8589934592\n" in head
    assert b"PaxHeader" not in tar.header(b"big", tar.FILE, size=8**11 - 1, mode=0o644)


@pytest.mark.rule("C-189", "C-191")
def test_the_bytes_never_change() -> None:
    """A changed sum here means that every user's code is sent again: it must be meant."""
    archive = whole(
        member(b"a.py", data=b"print(1)\n"),
        member(b"d", tar.FOLDER),
        member(b"d/" + b"long" * 40, data=b"x" * 512),
        member(b"d/l", tar.LINK, target=b"../a.py"),
        member(b"\xff" * 120),
    )
    assert hashlib.sha256(archive).hexdigest() == "7ad0a5f89cfb47a56a63d57df285ebd1875fb7ac0caf8b74288a4b1d39ccd28a"


@pytest.mark.rule("C-189", "C-269")
def test_the_tar_program_accepts_it(tmp_path: Path, programs: None) -> None:
    names = [b"plain", b"-rf", b"new\nline", b"\xff" * 101, b"x/" * 60 + b"\xe9", b"l" * 150]
    path = tmp_path / "x.tar"
    path.write_bytes(whole(*(member(name, data=name) for name in names)))
    done = subprocess.run(["tar", "-tf", path, "--quoting-style=escape"], capture_output=True, check=True)
    assert done.stdout.count(b"\n") == len(names)
    subprocess.run(["tar", "-xf", path, "-C", tmp_path, "--one-top-level=out"], capture_output=True, check=True)
    for name in names:
        with open(bytes(tmp_path / "out") + b"/" + name, "rb") as file:
            assert file.read() == name
