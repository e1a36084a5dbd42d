"""What a pod printed, read on: each line once, also when its node begins a new file for its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aj.engine.kubejobs import decoded, encoded
from aj.kube import podlogs
from aj.kube.client import Cluster
from aj.kube.podlogs import Cursor
from aj.kube.pods import Pod

POD = Pod("train-x-master-0", "training", "u1", "Running", aj_id="0a1b2c3d")
SMALL = 300  # bytes of one look


@dataclass
class Node:
    """A node as it answers for a log: from a second on, at most so many bytes, and only of its newest file."""

    file: list[tuple[float, bytes]] = field(default_factory=list)
    now: float = 0.0

    def text(self, kind: object, name: str, part: str, query: Mapping[str, str], namespace: str) -> bytes:
        lines = self.file
        if "sinceTime" in query:
            lines = [line for line in lines if stamp(line[0])[:19] >= query["sinceTime"][:19]]
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :] if int(query["tailLines"]) else []
        whole = b"".join(b"%s %s\n" % (stamp(at).encode(), words) for at, words in lines)
        return whole[: int(query["limitBytes"])] if "limitBytes" in query else whole


def stamp(at: float) -> str:
    """Write a moment as a node does: with as many digits as it needs."""
    return f"2026-01-01T00:{int(at) // 60:02d}:{int(at) % 60:02d}" + f"{at % 1:.3f}"[1:].rstrip("0").rstrip(".") + "Z"


def look(node: Node, cursor: Cursor, *, tail: int | None = None) -> tuple[bytes, Cursor]:
    """Read until nothing is new."""
    data = b""
    while True:
        page = podlogs.read(cast(Cluster, node), POD, cursor, tail=tail)
        data, cursor, tail = data + page.data, decoded(encoded(page.cursor)), None
        if not page.data:
            return data, cursor


# Lines come with the same or a later moment; between two looks the node may begin a new file.
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("line"), st.sampled_from([0.0, 0.0, 0.001, 0.25, 1.0, 7.0]), st.sampled_from([b"", b"a", b"b" * 90])
        ),
        st.tuples(st.just("look"), st.booleans(), st.just(b"")),
    ),
    max_size=40,
)


@pytest.mark.rule("T65", "V-114")
@given(steps=STEPS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_line_comes_once_whenever_its_node_begins_a_new_file(
    steps: list[tuple[str, float | bool, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(podlogs, "PAGE", SMALL)
    node, cursor, printed, read = Node(), Cursor(), b"", b""
    for number, (what, amount, words) in enumerate([*steps, ("look", False, b"")]):
        if what == "line":
            node.now += amount
            node.file.append((node.now, b"%d %s" % (number, words)))
            printed += b"%d %s\n" % (number, words)
            continue
        data, cursor = look(node, cursor)
        read += data
        if amount:
            node.file.clear()
    assert read == printed


@pytest.mark.rule("T65")
def test_lines_of_one_moment_are_told_from_those_of_the_file_before() -> None:
    node = Node([(1.0, b"one"), (1.0, b"two")])
    data, cursor = look(node, Cursor())
    assert data == b"one\ntwo\n"
    node.file = [(1.0, b"three"), (1.0, b"four"), (1.0, b"five")]
    data, cursor = look(node, cursor)
    assert data == b"three\nfour\nfive\n"
    assert look(node, cursor)[0] == b""


@pytest.mark.rule("T65", "V-114")
def test_the_last_lines_are_read_on_from_all_of_their_moment() -> None:
    node = Node([(1.0, b"one"), (1.0, b"two"), (1.0, b"three")])
    data, cursor = look(node, Cursor(), tail=1)
    assert data == b"three\n"
    node.file.append((1.0, b"four"))
    assert look(node, cursor)[0] == b"four\n"
    node.file = [(1.0, b"five")]
    assert look(node, cursor)[0] == b"five\n"
