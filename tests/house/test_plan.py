"""The plan of the house in the front room names the rooms that are there."""

from __future__ import annotations

from pathlib import Path

from tests.house import plan

HOUSE = Path(__file__).resolve().parents[2]


def test_the_plan_names_the_rooms_that_are_there() -> None:
    told = (HOUSE / "aj" / "__init__.py").read_text()
    due = [line for line in plan.lines() if line.strip()]
    assert [line for line in due if line not in told] == [], "run `python -m tests.house.plan`"
