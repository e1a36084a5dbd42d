"""Links within a selection: inside, missing, in a loop, or out of the tree; never followed on the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.pack.links import Fate, fate

SELECTED = {b"a/", b"a/b/", b"a/b/file", b"file"}


def follow(links: dict[bytes, bytes], boundary: bytes = b"") -> Fate:
    return fate(next(iter(links)), links, SELECTED | links.keys(), boundary=boundary)


@pytest.mark.rule("C-186", "C-266")
@pytest.mark.parametrize(
    ("links", "found"),
    [
        ({b"x": b"file"}, Fate.INSIDE),
        ({b"x": b"./a/../file"}, Fate.INSIDE),
        ({b"x": b"a"}, Fate.INSIDE),
        ({b"x": b"."}, Fate.INSIDE),
        ({b"a/x": b".."}, Fate.INSIDE),
        ({b"a/b/x": b"../../file"}, Fate.INSIDE),
        ({b"x": b"y/file", b"y": b"a/b"}, Fate.INSIDE),
        ({b"x": b"y/..", b"y": b"a/b"}, Fate.INSIDE),
        ({b"x": b"gone"}, Fate.MISSING),
        ({b"x": b"file/more"}, Fate.MISSING),
        ({b"x": b"gone/../file"}, Fate.MISSING),
        ({b"a/x": b"gone/../x"}, Fate.MISSING),
        ({b"x": b"x"}, Fate.LOOP),
        ({b"x": b"y", b"y": b"x"}, Fate.LOOP),
        ({b"x": b".."}, Fate.OUTSIDE),
        ({b"a/x": b"../../a/x"}, Fate.OUTSIDE),
        ({b"x": b"gone/../../other"}, Fate.OUTSIDE),
        ({b"x": b"y/../../../z", b"y": b"a/b"}, Fate.OUTSIDE),
        ({b"x": b"/etc/passwd"}, Fate.ABSOLUTE),
        ({b"x": b"y", b"y": b"/etc"}, Fate.ABSOLUTE),
    ],
)
def test_where_a_link_leads(links: dict[bytes, bytes], found: Fate) -> None:
    assert follow(links) is found


def test_a_boundary_is_not_left() -> None:
    assert follow({b"a/b/x": b"file"}, b"a/b/") is Fate.INSIDE
    assert follow({b"a/b/x": b"../b/file"}, b"a/b/") is Fate.OUTSIDE


PART = st.sampled_from(["a", "b", "c", "..", "."])
TARGET = st.lists(PART, min_size=1, max_size=5).map("/".join)


@pytest.mark.rule("C-186")
@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.sampled_from(["x", "a/x", "a/b/x", "a/c"]), TARGET, min_size=1))
def test_the_disk_agrees(tmp_path_factory: pytest.TempPathFactory, links: dict[str, str]) -> None:
    above = tmp_path_factory.mktemp("links")
    root = above / "deep" / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "b").write_bytes(b"")
    selected = {b"a/", b"a/b/", b"b", *(name.encode() for name in links)}
    for name, target in links.items():
        (root / name).symlink_to(target)
    for name in links:
        found = fate(name.encode(), {key.encode(): value.encode() for key, value in links.items()}, selected)
        seen = on_disk(root, root / name)
        # The kernel does not tell a missing place within the root from one outside it.
        assert found is seen or (found is Fate.OUTSIDE and seen is Fate.MISSING)


def on_disk(root: Path, link: Path) -> Fate:
    """What the kernel makes of a link."""
    try:
        link.stat()
    except (FileNotFoundError, NotADirectoryError):
        return Fate.MISSING
    except OSError as error:
        assert error.errno == errno.ELOOP
        return Fate.LOOP
    real = os.path.realpath(link)
    return Fate.INSIDE if real == str(root) or real.startswith(f"{root}/") else Fate.OUTSIDE
