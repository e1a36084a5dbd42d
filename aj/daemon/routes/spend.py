"""Routes of spending: what is spent, caps set and taken away, and what everything has cost."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.paths import Route
from aj.wire.spend import ClearCap, CostQuery, SetCap


def show(call: Call) -> Answer:
    """Tell what is spent now, and what holds back what."""
    return reply(call.engine.spend.show())


def put(call: Call) -> Answer:
    """Set a cap."""
    return reply(call.engine.spend.set_cap(call.decode(SetCap)))


def clear(call: Call) -> Answer:
    """Take caps away."""
    return reply(call.engine.spend.clear_caps(call.decode(ClearCap)))


def cost(call: Call) -> Answer:
    """Tell what was spent, in the caller's project or in all."""
    query = CostQuery(
        job=call.query.get("job") or None,
        period_s=call.seconds("period_s") if "period_s" in call.query else None,
        agent=call.query.get("agent") or None,
        session=call.query.get("session") or None,
        project=None if call.flag("all") else call.key,
    )
    with call.line.alive():
        return reply(call.engine.spend.cost(query))


HANDLERS: Mapping[Route, Handler] = {
    paths.SPEND: show,
    paths.CAP_SET: put,
    paths.CAP_CLEAR: clear,
    paths.COST: cost,
}
