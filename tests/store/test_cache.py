"""A cache gives an answer with its age, or none; it never gives an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.store import cache
from tests.conftest import MovedClock


def test_an_answer_comes_back_with_its_age(tmp_path: Path, clock: MovedClock) -> None:
    path = tmp_path / "quota" / "a.json"
    assert cache.get(path, clock=clock) is None
    cache.put(path, {"x": [1, None, "é"]}, clock=clock)
    clock.move(90)
    assert cache.get(path, clock=clock) == ({"x": [1, None, "é"]}, 90.0)
    clock.move(-200)
    assert cache.get(path, clock=clock) == ({"x": [1, None, "é"]}, 0.0)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b'{"at":"x","value":1}', b'{"at":null,"value":1}', b"\xff"])
def test_a_damaged_answer_is_none_and_is_replaced(tmp_path: Path, clock: MovedClock, raw: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(raw)
    assert cache.get(path, clock=clock) is None
    cache.put(path, 1, clock=clock)
    assert cache.get(path, clock=clock) == (1, 0.0)


def test_a_disk_that_refuses_costs_nothing(tmp_path: Path, clock: MovedClock) -> None:
    (tmp_path / "file").write_text("")
    cache.put(tmp_path / "file" / "a.json", 1, clock=clock)
    assert cache.get(tmp_path / "file" / "a.json", clock=clock) is None
