"""What was spent: hosts of jobs that are in memory, of those that are over, and of those that were removed.

The records of the jobs are the account; the ledger takes over what a removed record told. Each host counts
once, whatever a crash left twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from aj.base.clock import Clock, rfc3339
from aj.base.noun import dataclass
from aj.model import money
from aj.model.spend import Charge, Window, charges, reserve
from aj.model.workload import Workload
from aj.store import jobs
from aj.store import spend as store
from aj.store.layout import Layout

KEPT_S = 100 * 86400.0  # of removed jobs: the longest question is about 90 days


@dataclass(frozen=True)
class Used:
    """What counts against a cap: what is spent, and what is held back for jobs that have just started."""

    spent: int
    held: int = 0


class Account:
    """The account of one daemon. Safe between threads. It is read from disk with the first question."""

    def __init__(self, layout: Layout, clock: Clock, living: Callable[[], list[Workload]]) -> None:
        self._layout = layout
        self._clock = clock
        self._living = living
        self._guard = threading.RLock()
        self._is_open = False
        self._over: dict[str, tuple[Charge, ...]] = {}  # jobs on record that are not in memory, and some that are
        self._removed: dict[tuple[str, str], Charge] = {}
        self._sums: dict[tuple[Window, str | None], int] = {}
        self.warnings: tuple[str, ...] = ()

    # what the lifecycle tells

    def left(self, job: Workload) -> None:
        """Hear of a job that is no longer in memory."""
        with self._guard:
            if self._is_open:
                self._over[job.id] = charges(job)
                self._sums.clear()

    def settle(self, job: Workload) -> None:
        """Write down what a job cost that is about to be removed. Raises AjError when the disk refuses."""
        with self._guard:
            store.settle(self._layout, charges(job))
            if self._is_open:
                self._removed |= {charge.key: charge for charge in charges(job)}
                self._over.pop(job.id, None)
                self._sums.clear()

    # what is asked

    def all(self) -> list[Charge]:
        """Return every host that is known, in no order."""
        living = self._living()
        with self._guard:
            self._open()
            found = {charge.key: charge for charge in self._removed.values()}
            known = [*self._over.values(), *(charges(job) for job in living)]
            return list((found | {charge.key: charge for hosts in known for charge in hosts}).values())

    def rate(self, session: str | None) -> Used:
        """Return what an hour of all hosts costs that are there now; of one session, or of all."""
        return Used(sum(charge.price or 0 for charge in standing(self._living(), session)))

    def used(self, window: Window, session: str | None) -> Used:
        """Return what counts in a window against a budget; of one session, or of all."""
        living, now = _of(self._living(), session), self._clock.now()
        ids = {job.id for job in living}
        with self._guard:
            self._open()
            spent = self._settled(window, session, now)
            again = [charge for job_id in ids for charge in self._over.get(job_id, ()) if charge.ended_at is not None]
            hosts = [charge for job_id, known in self._over.items() if job_id not in ids for charge in known]
        # what another daemon drives is known as it was when this account was opened
        hosts = [charge for charge in hosts if charge.ended_at is None and _is_of(charge, session)]
        hosts += [charge for job in living for charge in charges(job)]
        spent += _sum(hosts, window, now) - _sum(again, window, now)
        return Used(spent, sum(held(job, window, now) for job in living))

    def _settled(self, window: Window, session: str | None, now: float) -> int:
        """What is over costs the same at every look: it is counted when it has changed."""
        key = window, session
        if key not in self._sums:
            over = (charge for hosts in self._over.values() for charge in hosts)
            found = {charge.key: charge for charge in (*self._removed.values(), *over)}
            mine = (charge for charge in found.values() if _is_of(charge, session))
            self._sums[key] = _sum((charge for charge in mine if charge.ended_at is not None), window, now)
        return self._sums[key]

    def _open(self) -> None:
        if self._is_open:
            return
        told: list[str] = []
        begin = self._clock.now() - KEPT_S
        for job in jobs.listing(self._layout, told.append):
            self._over[job.id] = charges(job)
        self._removed = {charge.key: charge for charge in store.settled(self._layout, told.append, rfc3339(begin)[:7])}
        self.warnings = tuple(told)
        self._is_open = True


def held(job: Workload, window: Window, now: float) -> int:
    """Return what is held back for a job that has a host, as far as it falls into the window."""
    host = job.host
    if host is None or host.ended_at is not None or job.state.is_final:
        return 0
    return due(job, host.price or 0, window, now)


def due(job: Workload, price: int, window: Window, now: float) -> int:
    """Return what a job may still cost for certain at a price, as far as it falls into the window."""
    rest = money.cost(price, 0, 0, max(0, money.micros(window.ends_at - now)))
    return min(rest, reserve(job, price, now))


def standing(living: Iterable[Workload], session: str | None) -> list[Charge]:
    """Return the hosts that are there now and paid for."""
    found = (charge for job in _of(living, session) for charge in charges(job))
    return [charge for charge in found if charge.ended_at is None]


def _of(living: Iterable[Workload], session: str | None) -> Sequence[Workload]:
    return [job for job in living if session is None or job.session == session]


def _is_of(charge: Charge, session: str | None) -> bool:
    return session is None or charge.session == session


def _sum(found: Iterable[Charge], window: Window, now: float) -> int:
    return sum(charge.cost(window.begins_at, now, window.ends_at) for charge in found if charge.price)
