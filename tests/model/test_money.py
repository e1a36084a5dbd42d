"""Money: whole millionths, and costs that add up however a time is cut."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.model import money

PRICES = st.integers(0, money.LARGEST * money.DOLLAR)
BEGAN = 1_800_000_000_000_000
HOUR = money.HOUR_US


@pytest.mark.rule("SC-01")
@given(PRICES, st.lists(st.integers(-HOUR, 30 * 24 * HOUR), min_size=1, max_size=20))
def test_the_parts_of_a_time_cost_what_the_whole_does(price: int, cuts: list[int]) -> None:
    moments = [BEGAN + cut for cut in sorted(cuts)]
    parts = [money.cost(price, BEGAN, since, until) for since, until in itertools.pairwise(moments)]
    assert sum(parts) == money.cost(price, BEGAN, moments[0], moments[-1])
    assert all(part >= 0 for part in parts)


@given(PRICES, st.integers(0, 10_000))
def test_whole_hours_cost_whole_prices(price: int, hours: int) -> None:
    assert money.cost(price, BEGAN, 0, BEGAN + hours * HOUR) == price * hours


@given(st.integers(1, money.LARGEST * money.DOLLAR), st.integers(1, money.LARGEST * money.DOLLAR))
def test_an_amount_lasts_until_it_is_spent_and_no_moment_longer(price: int, amount: int) -> None:
    lasts = money.lasts_us(price, amount)
    assert money.cost(price, 0, 0, lasts) >= amount > money.cost(price, 0, 0, lasts - 1)


def test_nothing_is_paid_before_the_begin_or_for_a_time_that_ends_before_it_begins() -> None:
    assert money.cost(money.DOLLAR, BEGAN, BEGAN - HOUR, BEGAN) == 0
    assert money.cost(money.DOLLAR, BEGAN, BEGAN + 2 * HOUR, BEGAN + HOUR) == 0


@given(PRICES)
def test_an_amount_that_is_written_is_read_as_the_same(amount: int) -> None:
    assert money.read(money.exact(amount).removeprefix("$")) == amount
    assert money.read(Decimal(amount) / money.DOLLAR) == amount
    assert round(money.number(amount) * money.DOLLAR) == amount


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("-1", "not an amount from 0"),
        ("1000001", "not an amount from 0"),
        ("NaN", "not an amount from 0"),
        ("Infinity", "not an amount from 0"),
        ("2,40", "no amount of US dollars"),
        ("", "no amount of US dollars"),
        ("0.0000001", "finer than a millionth"),
    ],
)
def test_what_is_no_amount_is_said(word: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        money.read(word)


@pytest.mark.parametrize(
    ("amount", "rounded", "exact"),
    [
        (0, "$0.00", "$0.00"),
        (1, "<$0.01", "$0.000001"),
        (4_999, "<$0.01", "$0.004999"),
        (5_000, "$0.01", "$0.005"),
        (2_400_000, "$2.40", "$2.40"),
        (1_999_995_001, "$2000.00", "$1999.995001"),
    ],
)
def test_sums_are_written_to_the_cent_and_prices_as_they_are(amount: int, rounded: str, exact: str) -> None:
    assert (money.text(amount), money.exact(amount)) == (rounded, exact)
