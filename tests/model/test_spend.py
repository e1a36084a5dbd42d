"""Windows of budgets, prices by service and kind, and what a job's hosts cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.base.clock import from_rfc3339, rfc3339
from aj.model import money, spend
from aj.model.spend import Cap, Per, Prices, window
from aj.model.state import JobState
from aj.model.workload import Host
from tests.jobs import workload

NOON = from_rfc3339("2026-03-11T12:00:00Z")  # a Wednesday
DOLLAR = money.DOLLAR


def day(at: float) -> str:
    return rfc3339(at)[:19]


@pytest.mark.rule("SC-04")
@pytest.mark.parametrize(
    ("per", "begin", "end"),
    [
        (Per.DAY, "2026-03-11", "2026-03-12"),
        (Per.WEEK, "2026-03-09", "2026-03-16"),
        (Per.MONTH, "2026-03-01", "2026-04-01"),
    ],
)
def test_windows_begin_at_midnight_utc(per: Per, begin: str, end: str) -> None:
    found = window(per, NOON)
    assert (day(found.begins_at), day(found.ends_at)) == (f"{begin}T00:00:00", f"{end}T00:00:00")


def test_a_month_of_december_ends_with_the_year() -> None:
    found = window(Per.MONTH, from_rfc3339("2026-12-31T23:59:59Z"))
    assert (day(found.begins_at), day(found.ends_at)) == ("2026-12-01T00:00:00", "2027-01-01T00:00:00")


@given(st.sampled_from(list(Per)), st.floats(0, 4e9))
def test_every_moment_lies_in_one_window_and_the_next_begins_where_it_ends(per: Per, now: float) -> None:
    found = window(per, now)
    assert found.begins_at <= now < found.ends_at
    assert window(per, found.ends_at).begins_at == found.ends_at
    assert window(per, found.begins_at) == found


def test_the_nearest_price_holds_and_this_machine_is_free_unless_it_has_one() -> None:
    kinds = {"default": 3, "a100": 4, "a100@west": 5}
    table = Prices({"vm": kinds, "aml": {"h100": 9}})
    asked = [("vm",), ("vm", "h100"), ("vm", "a100"), ("vm", "a100", "north"), ("vm", "a100", "west"), ("aml",)]
    assert [table.price(*words) for words in asked] == [3, 3, 4, 4, 5, None]
    assert table.price("local") == 0
    assert Prices({"local": {"default": 7}}).price("local") == 7


@pytest.mark.rule("LC-17")
def test_a_host_is_paid_from_its_begin_to_its_end_whatever_the_job_does() -> None:
    hosts = (
        Host(rfc3339(NOON), rfc3339(NOON + 1800), price=2 * DOLLAR),
        Host(rfc3339(NOON + 3600), price=4 * DOLLAR),
    )
    for state in JobState:
        job = workload(state=state, hosts=hosts, started_at=rfc3339(NOON + 60), completed_at=rfc3339(NOON + 120))
        first, second = spend.charges(job)
        assert first.cost(0, NOON + 7200) == DOLLAR
        assert second.cost(0, NOON + 7200) == 4 * DOLLAR
        assert second.cost(NOON + 5400, NOON + 7200) == 2 * DOLLAR
        assert second.lasted_us(0, NOON + 7200) == money.HOUR_US


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 10**8)), max_size=8))
@pytest.mark.rule("SC-01")
def test_the_days_of_a_job_add_up_to_what_it_cost(hosts: list[tuple[int, int, int]]) -> None:
    ends = [NOON + begin + length for begin, length, _ in hosts]
    made = [Host(rfc3339(NOON + begin), rfc3339(NOON + begin + n), price=price) for begin, n, price in hosts]
    found = spend.charges(workload(hosts=tuple(made)))
    total, now = 0, NOON
    while now <= max(ends, default=NOON):
        span = window(Per.DAY, now)
        total += sum(charge.cost(span.begins_at, 4e9, span.ends_at) for charge in found)
        now = span.ends_at
    assert total == sum(charge.cost(0, 4e9) for charge in found)


@pytest.mark.rule("SC-05")
def test_an_hour_is_held_back_less_what_was_spent_or_what_it_may_cost_at_most() -> None:
    price = 6 * DOLLAR
    assert spend.reserve(workload(), price, NOON) == price
    assert spend.reserve(workload(max_runtime_s=600.0), price, NOON) == DOLLAR
    assert spend.reserve(workload(max_runtime_s=1e6), price, NOON) == price
    assert spend.reserve(workload(max_cost=5 * DOLLAR), price, NOON) == 5 * DOLLAR
    running = workload(submitted_at=rfc3339(NOON), hosts=(Host(rfc3339(NOON), price=price),))
    assert spend.reserve(running, price, NOON + 600) == 5 * DOLLAR
    assert spend.reserve(running, price, NOON + 7200) == 0


def test_a_resubmission_begins_to_count_anew() -> None:
    old, new = Host(rfc3339(NOON), rfc3339(NOON + 3600), price=DOLLAR), Host(rfc3339(NOON + 9000), price=DOLLAR)
    job = workload(submitted_at=rfc3339(NOON + 8000), hosts=(old, new))
    assert spend.spent(job, NOON + 9000 + 1800) == DOLLAR // 2


def test_caps_take_each_others_place_by_scope_and_window() -> None:
    assert Cap(1).is_same(Cap(2)) and not Cap(1).is_same(Cap(1, Per.DAY))
    assert not Cap(1, session="a").is_same(Cap(1))
    assert Cap(1).counts("a") and Cap(1, session="a").counts("a") and not Cap(1, session="a").counts(None)
    names = [Cap(1).name, Cap(1, Per.WEEK).name, Cap(1, Per.DAY, "s1").name]
    assert names == ["throttle", "the weekly budget", "the daily budget of session s1"]
