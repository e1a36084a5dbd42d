"""Traces: there before a thing is made, gone after it, and read by a daemon that knows nothing else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from aj.store.traces import HELPER, SECRET, Trace, Traces

ONE = Trace(HELPER, "0a1b2c3d", "lab", "training", 5.0)
TWO = Trace(SECRET, "0a1b2c3d", "lab", "training", 5.0, 86405.0)


@pytest.mark.rule("V-068")
def test_a_trace_is_there_until_it_is_forgotten(tmp_path: Path) -> None:
    traces = Traces(tmp_path / "clusters")
    assert traces.all() == ()
    traces.note(ONE)
    traces.note(TWO)
    assert Traces(tmp_path / "clusters").all() == (ONE, TWO)
    assert traces.find(SECRET, "0a1b2c3d") == TWO
    later = Trace(SECRET, "0a1b2c3d", "lab", "training", 9.0, None)
    traces.note(later)
    assert traces.find(SECRET, "0a1b2c3d") == later
    traces.forget(SECRET, "0a1b2c3d")
    traces.forget(SECRET, "0a1b2c3d")
    assert traces.all() == (ONE,)
    (path,) = (tmp_path / "clusters").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"kind": "secret", "job": "x", "context": "c", "namespace": "n"}'])
def test_a_damaged_trace_hides_no_other(tmp_path: Path, damage: str) -> None:
    traces = Traces(tmp_path)
    traces.note(ONE)
    (tmp_path / "a.json").write_text(damage)
    (tmp_path / "z.json").write_text('{"kind":1,"job":2,"context":3,"namespace":4,"noted_at":"now","expires_at":null}')
    assert traces.all() == (ONE,)
