"""Lines are appended whole and durably; a torn end is cut off, and one broken line hides no other."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base.errors import AjError
from aj.store import jsonl


def lines(path: Path) -> tuple[list[object], list[str]]:
    damaged: list[str] = []
    return list(jsonl.read(path, damaged.append)), damaged


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert lines(tmp_path / "f") == ([], [])


@pytest.mark.rule("C-231")
def test_what_is_appended_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for number in range(5):
        assert jsonl.append(path, {"n": number, "odd": "\udcff\né"}) is False
    assert lines(path) == ([{"n": number, "odd": "\udcff\né"} for number in range(5)], [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@given(
    before=st.lists(st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), max_size=4),
    torn=st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.rule("C-231", "C-279")
def test_a_torn_end_is_dropped_by_readers_and_cut_off_by_the_next_writer(
    tmp_path_factory: pytest.TempPathFactory, before: list[dict[str, int]], torn: bytes
) -> None:
    path = tmp_path_factory.mktemp("t") / "f"
    for value in before:
        jsonl.append(path, value)
    with path.open("ab") as out:
        out.write(torn)
    assert lines(path) == (before, [])
    jsonl.append(path, {"last": 1})
    assert lines(path) == ([*before, {"last": 1}], [])
    assert path.read_bytes().endswith(b'{"last":1}\n')


@pytest.mark.rule("C-279")
@pytest.mark.parametrize("size", [jsonl.BLOCK - 1, jsonl.BLOCK, jsonl.BLOCK * 3 + 7])
def test_a_torn_end_longer_than_one_look_back_is_found(tmp_path: Path, size: int) -> None:
    path = tmp_path / "f"
    jsonl.append(path, {"n": 1})
    with path.open("ab") as out:
        out.write(b"x" * size)
    jsonl.append(path, {"n": 2})
    assert lines(path) == ([{"n": 1}, {"n": 2}], [])


@pytest.mark.rule("C-231", "C-280")
@pytest.mark.parametrize("garbage", [b"\xff\xfe\x00", b"{", b"[1]", b'"x"', b"null", b"", b"[" * 50_000, b"1" * 9_999])
def test_a_broken_line_in_the_middle_is_named_and_hides_no_other(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "f"
    jsonl.append(path, {"n": 1})
    with path.open("ab") as out:
        out.write(garbage + b"\n")
    jsonl.append(path, {"n": 3})
    assert lines(path) == ([{"n": 1}, {"n": 3}], [f"{path}:2"])


@pytest.mark.rule("C-281")
def test_a_wide_file_is_narrowed_and_that_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("")
    path.chmod(0o644)
    assert [jsonl.append(path, {}), jsonl.append(path, {})] == [True, False]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.rule("C-275")
@pytest.mark.parametrize("written", [0, 5])
def test_a_full_disk_leaves_the_lines_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    path = tmp_path / "f"
    jsonl.append(path, {"n": 1})
    before = path.read_bytes()
    real = os.pwrite

    def half(handle: int, data: bytes, offset: int) -> int:
        if offset > len(before) or not written:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data[:written], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        with pytest.raises(AjError, match="No space left"):
            jsonl.append(path, {"n": 2})
    assert path.read_bytes() == before


def test_a_short_write_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda handle, data, offset: real(handle, data[:3], offset))
    jsonl.append(tmp_path / "f", {"n": "0123456789"})
    assert lines(tmp_path / "f") == ([{"n": "0123456789"}], [])


@pytest.mark.rule("C-231")
def test_the_line_and_the_name_of_a_new_file_are_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    jsonl.append(tmp_path / "f", {})
    jsonl.append(tmp_path / "f", {})
    assert synced == [False, True, False]


def test_numbers_of_lines_count_the_broken_ones(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b'{"a":1}\nxx\n{"b":2}\n')
    assert list(jsonl.lines(path)) == [(1, b'{"a":1}\n'), (2, b"xx\n"), (3, b'{"b":2}\n')]


def test_an_unreadable_file_is_an_error_and_not_empty(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    with pytest.raises(OSError, match="directory"):
        list(jsonl.read(tmp_path / "f", lambda _: None))
    with pytest.raises(AjError, match="cannot write"):
        jsonl.append(tmp_path / "f", {})
