"""What is spent: hosts with their prices, caps on what may be spent, and the windows in which a budget counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from aj.base.clock import from_rfc3339
from aj.base.noun import dataclass
from aj.model import money
from aj.model.workload import Workload

HOUR_S = 3600.0


class Per(StrEnum):
    """The windows of a budget. Each begins at midnight UTC: of the day, of Monday, of the first of the month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def adjective(self) -> str:
        """The window as a word before `budget`."""
        return {"day": "daily", "week": "weekly", "month": "monthly"}[self.value]


@dataclass(frozen=True)
class Window:
    """One window: seconds since the epoch, the end not in it."""

    begins_at: float
    ends_at: float


def window(per: Per, now: float) -> Window:
    """Return the window in which a moment lies."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if per is Per.DAY:
        begin, end = today, today + timedelta(days=1)
    elif per is Per.WEEK:
        begin = today - timedelta(days=today.weekday())
        end = begin + timedelta(days=7)
    else:
        begin = today.replace(day=1)
        end = (begin + timedelta(days=32)).replace(day=1)
    return Window(begin.timestamp(), end.timestamp())


@dataclass(frozen=True)
class Cap:
    """How many dollars may be spent: an hour while jobs run (`per` is None: a throttle), or in a window (a budget).

    It counts the jobs of one agent session, or all when `session` is None.
    """

    usd: int
    per: Per | None = None
    session: str | None = None
    set_at: str = ""

    @property
    def amount(self) -> int:
        """Its limit in millionths."""
        return self.usd * money.DOLLAR

    @property
    def name(self) -> str:
        """What a message calls it."""
        kind = "throttle" if self.per is None else f"the {self.per.adjective} budget"
        return kind if self.session is None else f"{kind} of session {self.session}"

    def counts(self, session: str | None) -> bool:
        """Whether a job of this session counts."""
        return self.session is None or self.session == session

    def is_same(self, other: Cap) -> bool:
        """Whether one takes the place of the other."""
        return (self.per, self.session) == (other.per, other.session)


@dataclass(frozen=True)
class Prices:
    """What an hour of one host costs, in millionths of a dollar: by service, and there by kind of machine.

    A kind is `TYPE@REGION`, `TYPE`, or `default`; the first of these that is given holds.
    """

    of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def price(self, service: str, machine: str | None = None, region: str | None = None) -> int | None:
        """Return the price of a host; None when nobody has said it. This machine is free unless it has a price."""
        kinds = self.of.get(service, {})
        names = [f"{machine}@{region}", machine, DEFAULT] if machine is not None else [DEFAULT]
        found = next((kinds[name] for name in names if name is not None and name in kinds), None)
        return FREE.get(service) if found is None else found


DEFAULT = "default"
FREE = {"local": 0}


@dataclass(frozen=True)
class Charge:
    """One host of one job: whose, where, from when to when (None: it is still there), at which price an hour.

    The price is the one of the moment when the job got the host; None when there was none.
    """

    job: str
    service: str
    project: str
    created_at: str
    ended_at: str | None = None
    price: int | None = None
    agent: str | None = None
    session: str | None = None
    spot: bool = False

    @property
    def began_us(self) -> int:
        """Its begin in microseconds since the epoch."""
        return money.micros(from_rfc3339(self.created_at))

    def until_us(self, now: float) -> int:
        """Its end, or now while it is still there."""
        return money.micros(now if self.ended_at is None else from_rfc3339(self.ended_at))

    def cost(self, since: float, now: float, until: float | None = None) -> int:
        """Return what it cost from a moment on, at most until another one or now; 0 without a price."""
        end = self.until_us(now) if until is None else min(self.until_us(now), money.micros(until))
        return money.cost(self.price or 0, self.began_us, money.micros(since), end)

    def lasted_us(self, since: float, now: float) -> int:
        """Return how long it was there from a moment on."""
        return max(0, self.until_us(now) - max(self.began_us, money.micros(since)))

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other."""
        return self.job, self.created_at


def provider(job: Workload) -> str:
    """Return the service whose prices are a job's: a replica that takes it shares this machine with all the others."""
    return "local" if job.targeted is not None else job.service


def charges(job: Workload) -> tuple[Charge, ...]:
    """Return the hosts of a job as what they cost."""
    return tuple(
        Charge(
            job.id,
            provider(job),
            job.project_key,
            host.created_at,
            host.ended_at,
            host.price,
            job.agent,
            job.session,
            job.spot,
        )
        for host in job.hosts
    )


def of_submission(job: Workload) -> list[Charge]:
    """Return the hosts that a job was given since it was submitted last."""
    begun = from_rfc3339(job.submitted_at)
    return [charge for charge in charges(job) if from_rfc3339(charge.created_at) >= begun]


def spent(job: Workload, now: float) -> int:
    """Return what this submission of a job has cost until now."""
    return sum(charge.cost(0, now) for charge in of_submission(job))


def reserve(job: Workload, price: int, now: float) -> int:
    """Return what a budget holds back for a job: an hour of its host, less what that has cost already.

    It is less for a job that may not run so long, or may not cost so much.
    """
    limit_s = HOUR_S if job.max_runtime_s is None else min(HOUR_S, job.max_runtime_s)
    left = money.cost(price, 0, 0, money.micros(limit_s))
    host = job.host
    if host is not None and host.ended_at is None:
        left -= charges(job)[-1].cost(0, now)
    if job.max_cost is not None:
        left = min(left, job.max_cost - spent(job, now))
    return max(0, left)
