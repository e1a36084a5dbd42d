"""Caps and settled hosts on disk."""

from __future__ import annotations

import pytest

from aj.base.errors import AjError
from aj.model.spend import Cap, Charge, Per
from aj.store import spend
from tests.conftest import Home

DONE = Charge("aaaaaaaa", "local", "_none", "2026-01-31T23:00:00Z", "2026-02-01T01:00:00Z", 5, "codex", "s1", True)


def test_caps_are_kept_as_they_were_set(home: Home) -> None:
    assert spend.caps(home.layout) == ()
    caps = (Cap(20), Cap(1000, Per.MONTH), Cap(5, Per.DAY, "s1", "2026-01-31T12:00:00Z"))
    spend.save_caps(home.layout, caps)
    assert spend.caps(home.layout) == caps
    assert home.layout.caps.stat().st_mode & 0o777 == 0o600


@pytest.mark.rule("SC-06")
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"caps":[{"usd":"many"}]}'])
def test_caps_that_cannot_be_read_are_not_taken_for_none(home: Home, content: bytes) -> None:
    home.layout.prepare()
    spend.save_caps(home.layout, ())
    home.layout.caps.write_bytes(content)
    with pytest.raises(AjError, match="damaged"):
        spend.caps(home.layout)


@pytest.mark.rule("SC-03")
def test_settled_hosts_count_once_however_often_they_were_written(home: Home) -> None:
    told: list[str] = []
    assert spend.settled(home.layout, told.append) == []
    later = Charge("bbbbbbbb", "local", "_none", "2026-02-02T00:00:00Z", "2026-03-02T01:00:00Z", 5)
    standing = Charge("cccccccc", "local", "_none", "2026-02-02T00:00:00Z", None, 5)
    spend.settle(home.layout, [DONE, standing])
    spend.settle(home.layout, [DONE, later])
    assert sorted(spend.settled(home.layout, told.append), key=lambda one: one.job) == [DONE, later]
    assert spend.settled(home.layout, told.append, "2026-03") == [later]
    assert told == []


def test_a_damaged_line_is_told_and_hides_no_other(home: Home) -> None:
    spend.settle(home.layout, [DONE])
    (file,) = home.layout.spend.glob("*.jsonl")
    assert file.name == "2026-02.jsonl"
    file.write_bytes(b'nothing\n{"job":1}\n' + file.read_bytes() + b'{"job":"torn')
    told: list[str] = []
    assert spend.settled(home.layout, told.append) == [DONE]
    assert len(told) == 2 and f"{file}:1" in told[0]
