"""Spending: the prices, the caps, what may start because of them, and what everything has cost.

Caps and the prices of hosts are on disk before anybody relies on them. What a job is let through for is held
back by its own record, which tells its host and the price of that from the moment it may start.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from aj.base import redact
from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, ConfigError, NotFound, UserError
from aj.base.noun import dataclass
from aj.engine.account import Account, standing
from aj.engine.gate import Gate, Meter, Said
from aj.model import money
from aj.model.record import RecordState
from aj.model.spend import Cap, Charge, Per, Prices, window
from aj.model.state import JobState
from aj.model.workload import Workload
from aj.store import jobs, journal, lock, prices
from aj.store import spend as store
from aj.store.layout import Layout
from aj.wire.spend import CapDone, CapRow, ClearCap, CostAnswer, CostQuery, Priced, SetCap, SpendAnswer, Sum

DAY_S = 86400.0
USUAL_S = 30 * DAY_S  # of a question about costs that names no time
LONGEST_S = 90 * DAY_S
NOBODY = "(none)"


class Spend:
    """The spending of one user. Safe between threads. `changed` is told when a cap was changed.

    Jobs of the services in `driven` have hosts of which the price is known; others are only counted.
    """

    def __init__(
        self,
        layout: Layout,
        clock: Clock,
        living: Callable[[], list[Workload]],
        changed: Callable[[], None],
        driven: Collection[str] = (),
    ) -> None:
        self.account = Account(layout, clock, living)
        self._layout = layout
        self._clock = clock
        self._living = living
        self._changed = changed
        self._driven = driven
        self._guard = threading.RLock()
        self._turn = threading.RLock()
        self._prices: tuple[prices.Mark | None, Prices | ConfigError] = (None, Prices())
        self._caps: tuple[prices.Mark | None, tuple[Cap, ...]] = (None, ())
        self._said: Said = {}

    # prices

    def prices(self) -> Prices:
        """Return the price table as it stands now. Raises ConfigError at file and line when it is wrong."""
        with self._guard:
            mark = prices.mark(self._layout.prices)
            if mark != self._prices[0]:
                self._prices = mark, self._read_prices()
            found = self._prices[1]
        if isinstance(found, ConfigError):
            raise ConfigError(found.message, hint=found.hint, place=found.place, code=found.code)
        return found

    def _read_prices(self) -> Prices | ConfigError:
        try:
            return prices.read(self._layout.prices)
        except ConfigError as error:
            return error

    # who may start

    def gate(self) -> Gate:
        """Return the caps as they stand, for one plan."""
        with self._guard:
            try:
                found = self.prices()
                meters, problem = [self._meter(cap) for cap in self.caps()], None
            except AjError as error:
                found, meters, problem = Prices(), [], str(error)
            return Gate(meters, found, problem, self._clock.now(), self._said)

    @contextlib.contextmanager
    def deciding(self) -> Iterator[Gate]:
        """Give the caps as they stand to the one who decides; nobody else lets a job start during the block."""
        with self._turn:
            gate = self.gate()
            yield gate
            self._remember(gate)

    def _remember(self, gate: Gate) -> None:
        """Keep what was told to those that are held back."""
        waiting = {job.id for job in self._living() if job.state is JobState.QUEUED}
        with self._guard:
            rest = {name: said for name, said in self._said.items() if name in waiting - gate.asked}
            self._said = rest | gate.held_back

    def _meter(self, cap: Cap) -> Meter:
        if cap.per is None:
            return Meter(cap, self.account.rate(cap.session).spent)
        span = window(cap.per, self._clock.now())
        used = self.account.used(span, cap.session)
        return Meter(cap, used.spent, used.held, span)

    # caps

    def caps(self) -> tuple[Cap, ...]:
        """Return all caps, throttles first. Raises AjError when they cannot be read."""
        with self._guard:
            mark = prices.mark(self._layout.caps)
            if mark != self._caps[0]:
                self._caps = mark, store.caps(self._layout)
            return tuple(sorted(self._caps[1], key=_rank))

    def set_cap(self, asked: SetCap) -> CapDone:
        """Set a cap, durably, in the place of the one that was there. Raises UserError, AjError."""
        if not 0 < asked.usd <= money.LARGEST:
            words = f"{asked.usd} is not a whole number of US dollars from 1 to {money.LARGEST}"
            raise UserError(words, code="bad-cap")
        if asked.session is not None and not 0 < len(asked.session) <= 256:
            raise UserError("the id of a session has 1 to 256 characters", code="bad-cap")
        cap = Cap(asked.usd, asked.per, asked.session, rfc3339(self._clock.now()))
        with self._changing():
            known = next((one for one in self.caps() if one.is_same(cap)), None)
            is_new = known is None or known.usd != cap.usd
            if is_new:
                self._save([one for one in self.caps() if not one.is_same(cap)] + [cap])
        self._changed()
        return CapDone("ok" if is_new else "noop", (self._row(cap),))

    def clear_caps(self, asked: ClearCap) -> CapDone:
        """Take caps away, durably. Raises UserError, AjError."""
        with self._changing():
            gone = [one for one in self.caps() if _is_meant(one, asked)]
            if gone:
                self._save([one for one in self.caps() if one not in gone])
        self._changed()
        return CapDone("ok" if gone else "noop", tuple(self._row(one) for one in gone))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with self._guard, lock.held(self._layout.caps_lock):
            yield

    def _save(self, caps: Sequence[Cap]) -> None:
        store.save_caps(self._layout, caps)
        self._caps = prices.mark(self._layout.caps), tuple(caps)

    def _row(self, cap: Cap) -> CapRow:
        meter = self._meter(cap)
        ends_at = None if meter.window is None else rfc3339(meter.window.ends_at)
        return CapRow(cap, meter.used, meter.held, ends_at)

    # telling

    def show(self) -> SpendAnswer:
        """Return what is spent now, and what holds back what. Raises AjError when the caps cannot be read."""
        here = standing(self._living(), None)
        sums = {per: self.account.used(window(per, self._clock.now()), None).spent for per in Per}
        table, problem = Prices(), None
        try:
            table = self.prices()
        except ConfigError as error:
            problem = str(error)
        with self._guard:
            waiting = tuple(sorted(self._said))
        return SpendAnswer(
            rate=sum(charge.price or 0 for charge in here),
            hosts=len(here),
            day=sums[Per.DAY],
            week=sums[Per.WEEK],
            month=sums[Per.MONTH],
            caps=tuple(self._row(cap) for cap in self.caps()),
            waiting=waiting,
            prices=tuple(Priced(name, kind, one) for name, kinds in table.of.items() for kind, one in kinds.items()),
            problem=problem,
            warnings=self.account.warnings,
        )

    def cost(self, asked: CostQuery) -> CostAnswer:
        """Return what was spent. Raises NotFound for a job that nobody knows, UserError on a time that is too long."""
        period_s = USUAL_S if asked.period_s is None else asked.period_s
        if not 0 < period_s <= LONGEST_S:
            raise UserError("a period has one second to 90 days", code="bad-period")
        now = self._clock.now()
        since = 0.0 if asked.job is not None and asked.period_s is None else now - period_s
        parts = [part for part in self._parts(since, now) if _fits(part, asked)]
        if asked.job is not None and not parts and not jobs.exists(self._layout, asked.job):
            raise NotFound(f"no job {asked.job}", code="no-such-job", hint="`aj list` shows them")
        return CostAnswer(
            rfc3339(since) if since else self._begin(asked.job, now),
            rfc3339(now),
            _summed("total", parts),
            _groups(parts, lambda part: part.agent or NOBODY),
            _groups(parts, lambda part: part.user),
            _groups(parts, lambda part: part.service),
            asked.job,
            self.account.warnings,
        )

    def _begin(self, job: str | None, now: float) -> str:
        """When a job was given its first host."""
        return min((one.created_at for one in self.account.all() if one.job == job), default=rfc3339(now))

    def _parts(self, since: float, now: float) -> Iterator[_Part]:
        me = _user()
        for charge in self.account.all():
            if charge.until_us(now) >= money.micros(since):
                yield _part(charge, me, since, now)
        for key in journal.keys(self._layout):
            yield from self._elsewhere(key, me, since)

    def _elsewhere(self, key: str, me: str, since: float) -> Iterator[_Part]:
        """What was handed to another place: it has no price here."""
        begin = rfc3339(since) if since > 0 else ""
        for record in journal.read(self._layout, key, lambda _: None):
            is_elsewhere = record.state is RecordState.SUBMITTED and record.service not in self._driven
            if is_elsewhere and record.ts >= begin:
                yield _Part(record.id, record.service, key, me, record.agent, record.session)


@dataclass(frozen=True)
class _Part:
    """One host, or one job at another place, as far as it counts. `cost` is None when it has no price."""

    job: str
    service: str
    project: str
    user: str
    agent: str | None
    session: str | None
    cost: int | None = None
    lasted_us: int = 0
    hosts: int = 0
    running: int = 0
    spot: bool = False


def _part(charge: Charge, user: str, since: float, now: float) -> _Part:
    return _Part(
        charge.job,
        charge.service,
        charge.project,
        user,
        charge.agent,
        charge.session,
        None if charge.price is None else charge.cost(since, now),
        charge.lasted_us(since, now),
        1,
        int(charge.ended_at is None),
        charge.spot,
    )


def _fits(part: _Part, asked: CostQuery) -> bool:
    pairs = (
        (asked.job, part.job),
        (asked.agent, part.agent),
        (asked.session, part.session),
        (asked.project, part.project),
    )
    return all(wanted is None or wanted == given for wanted, given in pairs)


def _groups(parts: Iterable[_Part], name: Callable[[_Part], str]) -> tuple[Sum, ...]:
    """Sum up by a name, the dearest first."""
    found: dict[str, list[_Part]] = {}
    for part in parts:
        found.setdefault(name(part), []).append(part)
    sums = [_summed(group, of_it) for group, of_it in found.items()]
    return tuple(sorted(sums, key=lambda one: (-(one.cost or 0), -one.lasted_us, one.name)))


def _summed(name: str, parts: list[_Part]) -> Sum:
    known = [part.cost for part in parts if part.cost is not None]
    return Sum(
        name,
        sum(known) if known or not parts else None,
        sum(part.lasted_us for part in parts),
        len({part.job for part in parts}),
        sum(part.hosts for part in parts),
        sum(part.running for part in parts),
        len({part.job for part in parts if part.cost is None}),
        any(part.spot for part in parts),
    )


def _is_meant(cap: Cap, asked: ClearCap) -> bool:
    if cap.session != asked.session or (cap.per is None) != asked.is_throttle:
        return False
    return asked.per is None or cap.per is asked.per


def _rank(cap: Cap) -> tuple[int, bool, str]:
    return -1 if cap.per is None else list(Per).index(cap.per), cap.session is not None, cap.session or ""


def _user() -> str:
    """The name of who runs this daemon, and so of whose all its jobs are."""
    try:
        return redact.text(pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:
        return str(os.getuid())
