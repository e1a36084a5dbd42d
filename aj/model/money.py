"""Money in whole millionths of a US dollar, so that no sum drifts, and what a time at a price costs.

A cost is the difference of two points of one rising line of whole numbers. So the costs of the parts of a
time always add up to the cost of the whole, however it is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

DOLLAR = 1_000_000
CENT = 10_000
HOUR_US = 3_600_000_000  # microseconds
LARGEST = 1_000_000  # dollars, of one price or one limit: more is a slip


def micros(seconds: float) -> int:
    """Return a moment, seconds since the epoch, in whole microseconds."""
    return round(seconds * 1_000_000)


def read(value: str | int | Decimal) -> int:
    """Read an amount of dollars: zero or more, to the millionth. Raises ValueError saying what is due."""
    from decimal import Decimal, InvalidOperation  # 2 ms, only where somebody writes an amount

    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise ValueError(f"`{value}` is no amount of US dollars: write 2.40") from None
    if not amount.is_finite() or not 0 <= amount <= LARGEST:
        raise ValueError(f"`{value}` is not an amount from 0 to {LARGEST} US dollars")
    if amount % (Decimal(1) / DOLLAR):
        raise ValueError(f"`{value}` is finer than a millionth of a US dollar")
    return int(amount * DOLLAR)


def cost(price: int, began_us: int, since_us: int, until_us: int) -> int:
    """Return what the part of a time costs that began then, at a price an hour; times in microseconds."""
    since, until = max(began_us, since_us), max(began_us, until_us)
    return _accrued(price, max(since, until) - began_us) - _accrued(price, since - began_us)


def _accrued(price: int, length_us: int) -> int:
    return price * length_us // HOUR_US


def lasts_us(price: int, amount: int) -> int:
    """Return after how many microseconds at a price, above zero, an amount is spent."""
    return -(-amount * HOUR_US // price)


def number(amount: int) -> float:
    """Return an amount in dollars, as machines read it."""
    return amount / DOLLAR


def text(amount: int) -> str:
    """Write a sum for people, to the cent."""
    if 0 < amount < CENT // 2:
        return "<$0.01"
    cents = (amount + CENT // 2) // CENT
    return f"${cents // 100}.{cents % 100:02d}"


def exact(amount: int) -> str:
    """Write a price or a limit as it is, with two digits behind the point or as many as it has."""
    whole, rest = divmod(amount, DOLLAR)
    digits = f"{rest:06d}".rstrip("0")
    return f"${whole}.{digits.ljust(2, '0')}"
