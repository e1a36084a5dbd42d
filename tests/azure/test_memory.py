"""Small findings: kept for a time, dropped when wrong, and never so many that they matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.azure import memory
from aj.azure.memory import Memory
from tests.conftest import MovedClock


@pytest.fixture
def kept(tmp_path: Path, clock: MovedClock) -> Memory:
    return Memory(tmp_path / "azure", clock)


@pytest.mark.rule("A-055")
def test_a_finding_is_recalled_by_its_whole_key_until_it_is_old(kept: Memory, clock: MovedClock) -> None:
    assert kept.recall("compute", "a", "b") is None
    kept.keep("compute", "a", "b", value="here")
    assert kept.recall("compute", "a", "b", max_age_s=60) == "here"
    assert kept.recall("compute", "ab", "") is None
    assert kept.recall("sent", "a", "b") is None
    clock.move(61)
    assert kept.recall("compute", "a", "b", max_age_s=60) is None
    assert kept.recall("compute", "a", "b") == "here"
    kept.forget("compute", "a", "b")
    kept.forget("compute", "a", "b")
    assert kept.recall("compute", "a", "b") is None


def test_a_damaged_finding_is_none(kept: Memory) -> None:
    kept.keep("compute", "a", value="here")
    (file,) = (kept.folder / "compute").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text('{"at": 1, "value": [1]}')
    assert kept.recall("compute", "a") is None
    file.write_text("{")
    assert kept.recall("compute", "a") is None


def test_a_disk_that_refuses_costs_nothing(tmp_path: Path, clock: MovedClock) -> None:
    (tmp_path / "file").write_text("")
    broken = Memory(tmp_path / "file", clock)
    broken.keep("compute", "a", value="here")
    assert broken.recall("compute", "a") is None


def test_the_oldest_go_when_there_are_far_too_many(kept: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEPT", 20)
    for number in range(23):
        kept.keep("sent", str(number), value="x")
    assert len(list((kept.folder / "sent").iterdir())) <= 22
    assert kept.recall("sent", "22") == "x"
    assert kept.recall("sent", "0") is None
