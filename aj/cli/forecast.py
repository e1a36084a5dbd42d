"""What a job is going to cost, said before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.backend import registry
from aj.base import units

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.job import JobSpec


def tell(spec: JobSpec, ctx: Context) -> None:
    """Say what an hour costs, unless it is free. Raises ConfigError when the price table is wrong."""
    if not registry.traits(spec.service).driven or not ctx.layout.prices.exists():
        return
    from aj.model import money  # 3 ms, only for who has prices
    from aj.store import prices

    price = prices.read(ctx.layout.prices).price(spec.service)
    if not price:
        return
    words = f"forecast: {money.exact(price)} an hour"
    if spec.max_cost is not None:
        after = units.duration(money.lasts_us(price, spec.max_cost) / 1e6)
        words += f"; it is ended at {money.exact(spec.max_cost)}, after {after}"
    ctx.screen.note(words)
