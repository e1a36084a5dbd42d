"""Whether a job may have a host now, by what that costs: one look at all caps while one plan is made.

A cap holds back what has no host yet and ends nothing that has one. What is let through counts at once, so that
two jobs of one plan do not both take what is left for one. A job that costs nothing is held back by no cap.
"""

from __future__ import annotations

from collections.abc import Sequence

from aj.base.clock import rfc3339
from aj.base.noun import dataclass
from aj.engine.account import due
from aj.engine.lifecycle import has_host
from aj.model import money
from aj.model.spend import Cap, Prices, Window, provider
from aj.model.workload import Workload

AGAIN_S = 10.0  # prices are changed by hand, and nobody tells
TELL_S = 900.0  # the sums in the words of one that waits grow all the time: whoever follows it is not told each cent

Said = dict[str, tuple[Cap | None, float, str]]


@dataclass
class Meter:
    """One cap, and what counts against it. A budget has a window."""

    cap: Cap
    used: int
    held: int = 0
    window: Window | None = None

    def needs(self, job: Workload, price: int, now: float) -> int:
        """Return what a job would add."""
        return price if self.window is None else due(job, price, self.window, now)

    def has_room(self, needs: int) -> bool:
        """Whether so much more is within the cap."""
        return self.used + self.held + needs <= self.cap.amount

    def words(self, needs: int) -> str:
        """Say why a job waits."""
        more, limit = money.exact(needs), f"${self.cap.usd}"
        if self.window is None:
            now = money.exact(self.used + self.held)
            return f"blocked by {self.cap.name}: rate {now}/h + {more}/h is over the cap of {limit}/h"
        if needs > self.cap.amount:
            return f"blocked by {self.cap.name}: {more} is due for it alone, and the cap is {limit}"
        spent = f"spent {money.text(self.used)}"
        if self.held:
            spent += f" and {money.text(self.held)} held for running jobs"
        until = rfc3339(self.window.ends_at)[:16].replace("T", " ")
        return f"blocked by {self.cap.name}: {spent} of {limit}, {more} more is due; resumes {until} UTC"


class Gate:
    """The caps while one plan is made. `said` is what jobs were told at earlier looks; it is kept up to date.

    With a `problem` nobody knows what anything costs, and nothing may start.
    """

    def __init__(self, meters: Sequence[Meter], prices: Prices, problem: str | None, now: float, said: Said) -> None:
        self._meters = meters
        self._prices = prices
        self._problem = problem
        self._now = now
        self._said = said
        self._fresh: Said = {}
        self.asked: set[str] = set()

    def price(self, job: Workload) -> int | None:
        """Return what an hour of a host of this job costs."""
        return self._prices.price(provider(job))

    def refusal(self, job: Workload) -> str | None:
        """Say why a job may have no host yet, or None. One that has a host still is paid for already."""
        self.asked.add(job.id)
        if has_host(job):
            return None
        if self._problem is not None:
            return self._told(job, None, f"blocked by the price table: {self._problem}")
        price = self.price(job)
        for meter in self._meters:
            if not meter.cap.counts(job.session):
                continue
            if price is None:
                words = f"blocked by {meter.cap.name}: a host of `{job.service}` has no price"
                return self._told(job, meter.cap, words)
            needs = meter.needs(job, price, self._now)
            if price and not meter.has_room(needs):
                return self._told(job, meter.cap, meter.words(needs))
        return None

    def takes(self, job: Workload) -> None:
        """Count a job that is let through."""
        price = self.price(job) or 0
        for meter in self._meters:
            if meter.cap.counts(job.session) and not has_host(job):
                meter.held += meter.needs(job, price, self._now)

    @property
    def next_at(self) -> float | None:
        """When to look again at those that are held back; None when there are none."""
        if not self._fresh:
            return None
        ends = (meter.window.ends_at for meter in self._meters if meter.window is not None)
        return min((self._now + AGAIN_S, *ends))

    @property
    def held_back(self) -> Said:
        """Those of the `asked` jobs that were held back, and the words."""
        return self._fresh

    def _told(self, job: Workload, cap: Cap | None, words: str) -> str:
        known = self._said.get(job.id)
        if cap is not None and known is not None and known[0] == cap and self._now - known[1] < TELL_S:
            self._fresh[job.id] = known
        else:
            self._fresh[job.id] = cap, self._now, words
        return self._fresh[job.id][2]
