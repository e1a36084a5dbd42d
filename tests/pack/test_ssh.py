"""Files of ~/.ssh: those that are listed travel, each told, and no private key by accident."""

from __future__ import annotations

import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from aj.base.errors import UserError
from aj.model.code import CodePlan
from aj.pack import archive, node, ssh, walk
from tests.conftest import MovedClock
from tests.pack.trees import plan, plant

FRAME = b"-----%s OPENSSH PRIVATE " + b"KEY-----\n"  # in two pieces: no file here may look like a key
KEY = FRAME % b"BEGIN" + b"planted\n" + FRAME % b"END"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A home directory."""
    folder = tmp_path / "house" / ".ssh"
    folder.mkdir(parents=True)
    (folder / "known_hosts").write_text("example ssh-ed25519 AAAA\n")
    (folder / "config").write_text("Host example\n")
    (folder / "deploy").write_bytes(KEY)
    return folder.parent


@pytest.fixture
def tree(root: Path, later: MovedClock) -> CodePlan:
    plant(root, {"a.py": "print(1)\n"})
    return plan(root)


@pytest.mark.rule("C-175", "A-114")
def test_nothing_travels_by_default(tree: CodePlan, house: Path) -> None:
    assert list(node.added(tree, house)) == [b"aj_runner.sh"]


@pytest.mark.rule("C-175", "C-189", "A-112", "A-114")
def test_listed_files_travel_private_and_do_not_count(tree: CodePlan, house: Path, tmp_path: Path) -> None:
    listed = replace(tree, ssh=("known_hosts", "config"))
    folder = tmp_path / "store"
    code = archive.pack(walk.select(listed), folder=folder, generated=node.added(listed, house))
    assert code.digest == archive.pack(walk.select(tree), folder=folder).digest
    path = archive.find(folder, code)
    assert path is not None
    with tarfile.open(path) as members:
        assert members.getnames() == [".ssh", ".ssh/config", ".ssh/known_hosts", "a.py", "aj_runner.sh"]
        assert members.getmember(".ssh/known_hosts").mode == 0o600
        file = members.extractfile(".ssh/config")
        assert file is not None and file.read() == b"Host example\n"


@pytest.mark.rule("C-175")
def test_each_is_named_and_a_private_key_with_a_warning_of_its_own(tree: CodePlan, house: Path) -> None:
    listed = replace(tree, ssh=("known_hosts", "deploy"), ssh_private_keys=True)
    told = ssh.warnings(node.added(listed, house))
    assert [(one.code, one.message) for one in told] == [
        ("ssh-file", "~/.ssh/known_hosts travels with the code (`code.ssh`)"),
        ("private-key", "the private key ~/.ssh/deploy travels, and stays readable where the code is kept"),
    ]


@pytest.mark.rule("C-175", "A-114")
def test_a_private_key_is_known_by_what_is_in_it(tree: CodePlan, house: Path) -> None:
    with pytest.raises(UserError, match=r"deploy, which `code\.ssh` lists, is a private key") as caught:
        node.added(replace(tree, ssh=("deploy",)), house)
    assert caught.value.hint == "write `ssh_private_keys: true` beside it if it must travel"
    assert "planted" not in str(caught.value)


@pytest.mark.rule("C-175")
def test_what_cannot_go_is_named(tree: CodePlan, house: Path) -> None:
    os.mkfifo(house / ".ssh" / "pipe")
    (house / ".ssh" / "folder").mkdir()
    for name, says in [("gone", "cannot be read: No such file"), ("pipe", "is no small file"), ("folder", "no small")]:
        with pytest.raises(UserError, match=rf"\.ssh/{name}, which `code\.ssh` lists, .*{says}"):
            node.added(replace(tree, ssh=(name,)), house)
    with pytest.raises(UserError, match="HOME is not set"):
        node.added(replace(tree, ssh=("config",)), None)
