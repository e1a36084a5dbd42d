"""Spending: what is spent, caps on it, and what everything has cost."""

from __future__ import annotations

from typing import TypeVar

from aj.base.errors import OutcomeUnknown
from aj.client.line import AnswerLost, Line, Query
from aj.model.spend import Per
from aj.wire import paths
from aj.wire.paths import Route
from aj.wire.spend import CapDone, ClearCap, CostAnswer, CostQuery, SetCap, SpendAnswer

T = TypeVar("T")


class Spend:
    """What a caller can ask and say of spending."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def show(self) -> SpendAnswer:
        """Return what is spent now, and what holds back what."""
        return self._line.read(SpendAnswer, paths.SPEND)

    def set_cap(self, usd: int, *, per: Per | None = None, session: str | None = None) -> CapDone:
        """Set a cap: an hour, or in a window; of one agent session, or of all. Raises UserError, OutcomeUnknown."""
        return self._change(CapDone, paths.CAP_SET, SetCap(usd, per, session))

    def clear_caps(self, *, is_throttle: bool, per: Per | None = None, session: str | None = None) -> CapDone:
        """Take caps away. Raises OutcomeUnknown."""
        return self._change(CapDone, paths.CAP_CLEAR, ClearCap(is_throttle, per, session))

    def cost(self, asked: CostQuery, *, all_projects: bool = False) -> CostAnswer:
        """Return what was spent in the caller's project, or in all. Raises NotFound for an unknown job, UserError."""
        query: Query = {
            "job": asked.job,
            "period_s": asked.period_s,
            "agent": asked.agent,
            "session": asked.session,
            "all": 1 if all_projects else None,
        }
        return self._line.read(CostAnswer, paths.COST, query=query)

    def _change(self, kind: type[T], route: Route, body: object) -> T:
        try:
            return self._line.change(kind, route, body=body)
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer about a cap was lost: {lost}", hint="`aj spend show`") from lost
