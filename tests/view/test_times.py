"""Moments for people."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from aj.view import times
from aj.view.times import Times


@pytest.mark.rule("C-056")
def test_a_moment_is_local_in_the_chosen_zone() -> None:
    assert Times(0, ZoneInfo("Europe/Berlin")).local("2026-07-01T12:00:00.5Z") == "2026-07-01T14:00:00+02:00"
    assert Times(0, ZoneInfo("Europe/Berlin")).local("2026-01-01T12:00:00Z") == "2026-01-01T13:00:00+01:00"


def test_what_is_no_moment_stays() -> None:
    assert Times(0).local("yesterday") == "yesterday"
    assert Times(0).age("") == ""


def test_a_clock_that_runs_behind_gives_no_negative_age() -> None:
    assert Times(0).age("2026-07-01T12:00:00Z") == "0s"


@pytest.mark.rule("C-086")
def test_zones_are_found_by_name() -> None:
    assert times.zone(None) is None
    assert times.zone("system") is None
    assert times.zone("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    for wrong in ("Mars/X", "../etc/passwd", "/etc/localtime"):
        with pytest.raises(ValueError, match="no time zone"):
            times.zone(wrong)
