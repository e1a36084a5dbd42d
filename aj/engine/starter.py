"""Turning the plan of who starts into moves, and into a thread for every job that has started.

A job that was asked to end and does not is ended by force here, when its grace is long over.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from aj.backend.protocol import Driver
from aj.base import crash, units
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError, Refused
from aj.engine import scheduler
from aj.engine.drive import GRACE_S, Drive, Log, is_active
from aj.engine.gate import Gate
from aj.engine.lifecycle import Lifecycle, has_host, housed, ran_s
from aj.engine.spend import Spend
from aj.model import money
from aj.model.json import Json
from aj.model.spend import spent
from aj.model.state import JobState, Mover
from aj.model.workload import Workload
from aj.store.layout import Layout

HELD = "the upgrade of the daemon"
MAX_RUNTIME, MAX_COST = "max-runtime", "max-cost"
PATIENCE_S = 30.0  # beyond the grace, for processes that were asked to end


class Starter:
    """Starts jobs of all projects. `begin` runs a function in a thread of its own."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        layout: Layout,
        drivers: Mapping[str, Driver],
        carrier: Drive,
        clock: Clock,
        begin: Callable[[Callable[[], None]], None],
        log: Log,
        overdue: Callable[[Workload, str], None],
        spend: Spend,
    ) -> None:
        self._lifecycle = lifecycle
        self._layout = layout
        self._drivers = drivers
        self._carrier = carrier
        self._clock = clock
        self._begin = begin
        self._log = log
        self._overdue = overdue
        self._spend = spend
        self._planning = threading.RLock()
        self._guard = threading.Lock()
        self._carried: set[str] = set()
        self._fenced: set[tuple[str, int]] = set()
        self._held_until = 0.0

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Let nothing start during the block."""
        with self._planning:
            yield

    def hold(self, lease_s: float) -> None:
        """Start no job for so long, unless this is said again; those that run or are in setup go on."""
        with self._planning:
            self._held_until = self._clock.monotonic() + lease_s

    def round(self) -> float | None:
        """Start every job whose turn it is and that fits; return when to look again, None when a change tells."""
        with self._planning:
            now = self._clock.now()
            living = self._lifecycle.living()
            wanted = {job.service for job in living} & self._drivers.keys()
            places = {name: place_of(self._drivers[name]) for name in wanted}
            held_s = self._held_until - self._clock.monotonic()
            with self._spend.deciding() as gate:
                plan = scheduler.plan(living, places, now, gate)
                self._act(plan if held_s <= 0 else _nothing_starts(plan), gate)
            fenced_at = self._fence(living, now)
            overdue_at = self._end_overdue(living, now)
        moments = (plan.next_at, fenced_at, overdue_at, now + held_s if held_s > 0 else None)
        return min((at for at in moments if at is not None), default=None)

    def _act(self, plan: scheduler.Plan, gate: Gate) -> None:
        for job_id, words in plan.waits.items():
            self._lifecycle.say_waiting(job_id, words)
        for job_id in plan.expired:
            self._try(job_id, partial(self._expire, job_id))
        for job_id, gpus in plan.starts.items():
            self._try(job_id, partial(self._start, job_id, gpus, gate))

    def _try(self, job_id: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Refused:
            pass  # it was terminated or deleted just now
        except AjError as error:
            self._log(f"job {job_id}: {error}")

    def _expire(self, job_id: str) -> None:
        job = self._lifecycle.get(job_id)
        waited = units.duration((job.deadline_at or 0) - from_rfc3339(job.submitted_at))
        why = _why(job.waiting_for)
        words = f"it could not start within {waited}{why}"
        self._lifecycle.move(job_id, JobState.FAILED, Mover.SCHEDULER, words, reason="claim-deadline-expired")

    def _start(self, job_id: str, gpus: tuple[int, ...], gate: Gate) -> None:
        """Give a job a host, at the price of this moment: the record of that is what holds its money back."""
        facts: dict[str, Json] = {scheduler.GPUS: list(gpus)} if gpus else {}
        job = self._lifecycle.get(job_id)
        hosts = housed(job, rfc3339(self._clock.now()), gate.price(job))
        self._lifecycle.move(job_id, JobState.PROVISIONING, Mover.SCHEDULER, facts=facts, hosts=hosts)
        crash.point("spend.after-reservation")
        self.carry(job_id)

    def carry(self, job_id: str) -> None:
        """Give a job that has started a thread, unless it has one."""
        with self._guard:
            if job_id in self._carried:
                return
            self._carried.add(job_id)
        self._begin(partial(self._carry_and_leave, job_id))

    def _carry_and_leave(self, job_id: str) -> None:
        try:
            self._carrier.carry(job_id)
        finally:
            with self._guard:
                self._carried.discard(job_id)
        job = self._lifecycle.held(job_id)
        if job is not None and is_active(job, self._drivers) and not self._carrier.is_leaving:
            self.carry(job_id)  # it was started again before this thread had left

    def _fence(self, living: Sequence[Workload], now: float) -> float | None:
        """End by force what was asked to end long ago; return when the next one would be."""
        moments = []
        for job in living:
            if job.terminating_since is None or not scheduler.holds(job) or (job.id, job.attempt) in self._fenced:
                continue
            grace_s = GRACE_S if job.grace_s is None else job.grace_s
            patient_until = from_rfc3339(job.terminating_since) + grace_s + PATIENCE_S
            if patient_until > now:
                moments.append(patient_until)
                continue
            self._fenced.add((job.id, job.attempt))
            self._begin(partial(self._force, job))
        return min(moments, default=None)

    def _end_overdue(self, living: Sequence[Workload], now: float) -> float | None:
        """End what has run as long or has cost as much as it may; return when the next one would have."""
        moments = []
        for job in living:
            for until, reason in _limits(job, now):
                if until > now:
                    moments.append(until)
                else:
                    self._begin(partial(self._overdue, job, reason))
        return min(moments, default=None)

    def _force(self, job: Workload) -> None:
        try:
            self._drivers[job.service].teardown(job, self._layout.job(job.id))
        except (AjError, OSError) as error:
            self._log(f"job {job.id}: {error}")


def _limits(job: Workload, now: float) -> Iterator[tuple[float, str]]:
    """Yield when a job will have run too long or cost too much, each with the word for that end."""
    if not may_be_ended(job):
        return
    if job.max_runtime_s is not None and job.state is JobState.RUNNING:
        yield now + job.max_runtime_s - ran_s(job, rfc3339(now)), MAX_RUNTIME
    if job.max_cost is None:
        return
    left, price = job.max_cost - spent(job, now), job.host.price if job.host is not None and has_host(job) else None
    if left <= 0:
        yield now, MAX_COST
    elif price:
        yield now + money.lasts_us(price, left) / 1e6, MAX_COST


def may_be_ended(job: Workload) -> bool:
    """Tell whether a limit still ends a job: not once its processes have ended, or its end was asked for."""
    return not job.state.is_final and job.state is not JobState.FINALIZING and job.terminating_since is None


def _why(waiting_for: str | None) -> str:
    """Write what a job waited for, behind the sentence that it did not start."""
    if waiting_for is None:
        return ""
    return f"; it was {waiting_for}" if waiting_for.startswith("blocked by ") else f"; it waited for {waiting_for}"


def _nothing_starts(plan: scheduler.Plan) -> scheduler.Plan:
    """Let those that could start wait too."""
    return replace(plan, starts={}, waits={**plan.waits, **dict.fromkeys(plan.starts, HELD)})


def place_of(driver: Driver) -> scheduler.Place:
    """Return what a driver's place has."""
    return scheduler.Place(driver.capacity(), driver.slots())
