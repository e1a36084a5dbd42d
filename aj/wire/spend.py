"""What crosses the socket about spending. Money is in millionths of a US dollar, times are RFC 3339 UTC."""

from __future__ import annotations

from aj.base.noun import dataclass
from aj.model.spend import Cap, Per


@dataclass(frozen=True)
class SetCap:
    """Set a cap, in whole dollars: an hour (`per` is None) or in a window; of one agent session, or of all."""

    usd: int
    per: Per | None = None
    session: str | None = None


@dataclass(frozen=True)
class ClearCap:
    """Take caps away: throttles or budgets, of one window or any; of one agent session, or of all."""

    is_throttle: bool
    per: Per | None = None
    session: str | None = None


@dataclass(frozen=True)
class CapRow:
    """A cap as it stands: what counts against it now. `used` and `held` of a throttle are an hour's.

    `held` is what is kept back for jobs that have just started; `resets_at` is None for a throttle.
    """

    cap: Cap
    used: int
    held: int = 0
    resets_at: str | None = None


@dataclass(frozen=True)
class CapDone:
    """What setting or taking away did: `ok`, or `noop` when it was so already; the caps it was about."""

    status: str
    rows: tuple[CapRow, ...] = ()


@dataclass(frozen=True)
class Priced:
    """One line of the price table."""

    service: str
    kind: str
    price: int


@dataclass(frozen=True)
class SpendAnswer:
    """What is spent now: `rate` an hour by `hosts` hosts, and in the windows that hold this moment.

    `waiting` are the jobs that a cap holds back; `problem` is what is wrong with the price table.
    """

    rate: int
    hosts: int
    day: int
    week: int
    month: int
    caps: tuple[CapRow, ...]
    waiting: tuple[str, ...] = ()
    prices: tuple[Priced, ...] = ()
    problem: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sum:
    """What some hosts cost. `cost` is None when none of them has a price; `unpriced` counts jobs that lack one.

    `running` hosts are still there.
    """

    name: str
    cost: int | None = None
    lasted_us: int = 0
    jobs: int = 0
    hosts: int = 0
    running: int = 0
    unpriced: int = 0
    has_spot: bool = False


@dataclass(frozen=True)
class CostQuery:
    """Whose costs, and of how long; None means any. Without `period_s` all of one job, or 30 days.

    `project` is a key; a caller names its own, or all, by the request itself.
    """

    job: str | None = None
    period_s: float | None = None
    agent: str | None = None
    session: str | None = None
    project: str | None = None


@dataclass(frozen=True)
class CostAnswer:
    """What was spent between two moments, in total and by agent, user and provider."""

    since: str
    until: str
    total: Sum
    agents: tuple[Sum, ...]
    users: tuple[Sum, ...]
    providers: tuple[Sum, ...]
    job: str | None = None
    warnings: tuple[str, ...] = ()
