"""What people write is read whole, or it is said why not; nothing waits for a pipe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aj.base import plain


def test_a_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert plain.read(tmp_path / "file", 5) == plain.read(tmp_path / "link", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        plain.read(tmp_path / "file", 4)


def test_only_what_has_no_name_at_all_is_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("gone")
    for name in ("pipe", "folder", "loop", "nowhere"):
        with pytest.raises(OSError) as refused:
            plain.read(tmp_path / name, 10)
        assert not isinstance(refused.value, FileNotFoundError) and refused.value.strerror
    with pytest.raises(FileNotFoundError):
        plain.read(tmp_path / "none", 10)
