"""The runtime folder is private or not used, and says which daemon lives there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from aj.base import proc
from aj.base.errors import DaemonError
from aj.store.runtime import DaemonFile, Place, check_private
from tests.conftest import Home


def place(home: Home, runtime: Path | None = None) -> Place:
    folders = replace(home.folders, runtime=runtime) if runtime else home.folders
    return Place(replace(home.layout, folders=folders))


@pytest.mark.rule("C-198")
def test_it_is_made_private(home: Home) -> None:
    os.umask(os.umask(0o022))
    place(home).prepare()
    assert home.folders.runtime.stat().st_mode & 0o777 == 0o700
    place(home).check()


@pytest.mark.rule("C-198", "C-288")
@pytest.mark.parametrize("mode", [0o755, 0o701, 0o770])
def test_a_folder_open_to_others_is_refused_and_left_as_it_is(home: Home, mode: int) -> None:
    home.folders.runtime.mkdir()
    home.folders.runtime.chmod(mode)
    with pytest.raises(DaemonError) as error:
        place(home).prepare()
    assert str(home.folders.runtime) in error.value.message and f"{mode:04o}" in error.value.message
    assert error.value.hint == f"`chmod 700 {home.folders.runtime}`"
    assert home.folders.runtime.stat().st_mode & 0o777 == mode
    assert list(home.folders.runtime.iterdir()) == []


@pytest.mark.rule("C-198", "C-288")
def test_a_link_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    home.folders.runtime.symlink_to(tmp_path / "real")
    with pytest.raises(DaemonError, match="is a link"):
        place(home).prepare()
    assert list((tmp_path / "real").iterdir()) == []


def test_a_file_is_refused(home: Home) -> None:
    home.folders.runtime.write_text("x")
    with pytest.raises(DaemonError, match="is not a folder"):
        place(home).check()


@pytest.mark.rule("C-198", "C-288")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_somebody_else_is_refused(home: Home) -> None:
    home.folders.runtime.mkdir(mode=0o700)
    os.chown(home.folders.runtime, 65534, 65534)
    with pytest.raises(DaemonError, match="owner 65534"):
        place(home).prepare()


@pytest.mark.rule("C-199", "C-289")
def test_a_long_path_has_a_short_socket(home: Home, tmp_path: Path) -> None:
    long = place(home, tmp_path / ("x" * 200))
    assert len(os.fsencode(long.socket)) < 60
    assert long.socket.parent == Path(f"/tmp/aj-{os.getuid()}")
    assert len(long.socket.stem) == 16
    assert long.socket != place(home, tmp_path / ("y" * 200)).socket
    assert place(home).socket == home.folders.runtime / "daemon.sock"


@pytest.mark.rule("C-199")
def test_the_daemon_says_who_it_is_and_is_read_again(home: Home) -> None:
    here = place(home)
    here.prepare()
    said = DaemonFile(proc.identity(), "1.2.3", 1, 2, "abc", str(here.socket))
    here.write(said)
    assert here.read() == said
    assert home.layout.daemon_file.stat().st_mode & 0o777 == 0o600
    here.remove()
    assert here.read() is None
    here.remove()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": "x"}', '{"pid": 1, "protocol": 3}'])
def test_a_file_that_says_nothing_is_as_none(home: Home, text: str) -> None:
    place(home).prepare()
    home.layout.daemon_file.write_text(text)
    assert place(home).read() is None


def test_an_absent_folder_is_private(tmp_path: Path) -> None:
    check_private(tmp_path / "no" / "such")
