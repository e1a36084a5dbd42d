"""Which files of a project are shared, and which never leave it."""

from __future__ import annotations

import pytest

from aj.base.errors import Refused
from aj.template import shared


@pytest.mark.rule("C-137")
def test_what_is_shared() -> None:
    yes = (
        "template/a.yaml",
        "template/sub/a.yaml",
        "account/a.yaml",
        "environment/e.txt",
        "storage/s.yaml",
        "scripts/x/y.sh",
        "README",
        "readme.md",
        "clusters/eu.yaml",
    )
    no = (
        "aj.toml",
        "aj_config.json",
        "template/aj.toml",
        "scripts/aj_config.json",
        "submission/a.yaml",
        "scripts/logs/x",
        "template/daemon/a.yaml",
        "record.jsonl",
        "template/.git/config",
        "template/.GIT/config",
        "template/.hidden.yaml",
        "template/a.yaml.orig-1",
        "scripts/__pycache__/a.pyc",
        "scripts/a~",
        "scripts/.1.x.part",
        "other.txt",
        "clusters/a.txt",
        "clusters/deep/a.yaml",
        "SUBMISSION/a.yaml",
    )
    assert [path for path in yes if not shared.is_shared(path)] == []
    assert [path for path in no if shared.is_shared(path)] == []


@pytest.mark.rule("C-138", "C-338")
@pytest.mark.parametrize(
    "path",
    ["../x", "/x", "template/../x", "template//x", "./x", "template/a\\b", "template/a\nb", "a/.git /x", "a/.Git./x"],
)
def test_no_path_leads_out(path: str) -> None:
    with pytest.raises(Refused, match="is "):
        shared.wanted([("100644", path.encode(), 1)], "there")


@pytest.mark.rule("C-138")
def test_limits_and_doubles() -> None:
    with pytest.raises(Refused, match="only in capitals"):
        shared.wanted([("100644", b"template/a.yaml", 1), ("100644", b"template/A.yaml", 1)], "there")
    with pytest.raises(Refused, match="are no templates"):
        shared.wanted([("100644", b"template/a.yaml", shared.MOST_BYTES + 1)], "there")
    many = [("100644", f"template/{number}.yaml".encode(), 1) for number in range(shared.MOST_FILES + 1)]
    with pytest.raises(Refused, match="are no templates"):
        shared.wanted(many, "there")
