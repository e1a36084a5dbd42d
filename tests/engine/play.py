"""An engine with a driver, buckets and a clock that do as they are told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aj.backend.protocol import Fate, Observation, SetupFailed
from aj.base import clock as clocks
from aj.base.clock import rfc3339
from aj.engine.artifacts import NoArtifacts
from aj.engine.jobs import Jobs
from aj.model.bucket import Attached, Bound, Kind, Purpose
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.state import JobState
from aj.model.ticket import Mode
from aj.model.workload import Needs, Workload
from aj.wire.messages import Exec, ExecPlan
from tests.conftest import Home
from tests.jobs import spec
from tests.yard import PROJECT

S = JobState


class HandClock:
    """A clock that the test moves, and that wakes whoever waits for it."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0
        self._limits: dict[int, float] = {}

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        limit = self._limits[threading.get_ident()] = self.at + timeout_s
        try:
            while not event.wait(0.002):
                if self.at >= limit:
                    return False
            return True
        finally:
            del self._limits[threading.get_ident()]

    def is_awaited(self, seconds: float) -> bool:
        """Whether somebody waits for exactly so long from now."""
        return self.at + seconds in list(self._limits.values())

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class Told:
    """A driver whose steps, processes and teardown go as the test says."""

    place: Needs = field(default_factory=lambda: Needs(4.0, 1 << 30, 0))
    places: int = 2
    fails: dict[JobState, list[Exception]] = field(default_factory=dict)
    teardowns: list[Exception] = field(default_factory=list)
    ends: dict[str, Observation] = field(default_factory=dict)
    done: list[tuple[str, str]] = field(default_factory=list)
    ask: threading.Event = field(default_factory=threading.Event)
    releases: list[Exception] = field(default_factory=list)
    comes_back: bool = True

    def steps(self, job: Workload) -> Sequence[JobState]:
        return (S.PROVISIONING, S.DOWNLOADING, S.STARTING) if job.image else (S.PROVISIONING, S.STARTING)

    def capacity(self) -> Needs:
        return self.place

    def slots(self) -> int:
        return self.places

    def needs(self, spec: JobSpec) -> Needs:
        return Needs(cpus=float(spec.env.get("CPUS", "1")))

    def step(self, state: JobState, job: Workload, folder: Path) -> Mapping[str, Json]:
        assert job.spec is not None
        self.done.append((job.id, state.value))
        if self.fails.get(state):
            raise self.fails[state].pop(0)
        return {state.value: True, "notes": [f"{state.value} was noted"]}

    def observe(self, job: Workload, folder: Path) -> Observation:
        return self.ends.get(job.id, Observation(Fate.RUNNING))

    def wait(self, job: Workload, folder: Path, stop: threading.Event) -> Observation:
        while job.id not in self.ends and not stop.wait(0.002):
            pass
        return self.observe(job, folder)

    def terminate(self, job: Workload, folder: Path, grace_s: float) -> None:
        self.done.append((job.id, f"terminate {grace_s:g}"))
        self.ends[job.id] = Observation(Fate.EXITED, exit_code=143)

    def exec_plan(self, job: Workload, folder: Path, asked: Exec) -> ExecPlan:
        return ExecPlan(asked.argv, {}, str(folder))

    def preempt(self, job: Workload, folder: Path) -> None:
        self.done.append((job.id, "preempt"))
        self.ends[job.id] = Observation(Fate.LOST, message="the supervisor is gone")

    def revive(self, job: Workload, folder: Path) -> None:
        self.done.append((job.id, "revive"))
        if not self.comes_back or (job.preempted and not job.can_restart):
            raise SetupFailed("the host is gone")
        self.ends.pop(job.id, None)

    def release(self, job: Workload, folder: Path) -> None:
        self.done.append((job.id, "release"))
        if self.releases:
            raise self.releases.pop(0)
        self.ends.pop(job.id, None)

    def teardown(self, job: Workload, folder: Path) -> None:
        self.done.append((job.id, "teardown"))
        if self.teardowns:
            raise self.teardowns.pop(0)


@dataclass
class Box(NoArtifacts):
    """Buckets in memory: what a job had saved is there again when it is restored. `fails` are raised in their order."""

    purposes: tuple[Purpose, ...] = ()
    needed: bool = False
    fails: list[Exception] = field(default_factory=list)
    done: list[tuple[str, str]] = field(default_factory=list)
    saved: dict[str, int] = field(default_factory=dict)
    holds: threading.Event | None = None

    def admit(self, job: Workload) -> Workload:
        bound = {purpose.value: Bound("box", Kind.DIR, "local", f"{job.id}/") for purpose in self.purposes}
        return replace(job, attached=Attached(bound, require_output=self.needed)) if bound else job

    def requires(self, job: Workload) -> bool:
        return self.needed

    def restores(self, job: Workload) -> bool:
        return job.attached is not None

    def saves(self, job: Workload) -> bool:
        return job.attached is not None and job.attached.saves

    def restore(self, job: Workload, folder: Path, stop: threading.Event) -> Mapping[str, Json]:
        self._do(job, "restore")
        return {"restored": self.saved.get(job.id, 0)}

    def save(self, job: Workload, folder: Path, *, last: bool, stop: threading.Event) -> None:
        while self.holds is not None and not self.holds.wait(0.002) and not stop.is_set():
            pass
        self._do(job, "last" if last else "save")
        self.saved[job.id] = self.saved.get(job.id, 0) + 1

    def remove(self, job: Workload, folder: Path) -> None:
        self._do(job, "remove")

    def _do(self, job: Workload, what: str) -> None:
        self.done.append((job.id, what))
        if self.fails:
            raise self.fails.pop(0)


@dataclass
class Play:
    """An engine with a driver that does as it is told, and a clock moved by hand."""

    home: Home
    driver: Told = field(default_factory=Told)
    clock: HandClock = field(default_factory=HandClock)
    box: Box = field(default_factory=Box)
    resolve: Callable[[str], str] = lambda image: f"sha256:{image.rpartition(':')[2].ljust(64, '0')}"
    log: list[str] = field(default_factory=list)
    engine: Jobs = field(init=False)

    def __post_init__(self) -> None:
        self.home.layout.prepare()
        self.again()

    def again(self) -> Jobs:
        self.engine = Jobs(
            self.home.layout,
            {"local": self.driver},
            self.clock,
            lambda *_: None,
            artifacts=self.box,
            resolve=self.resolve,
            log=self.log.append,
        )
        return self.engine

    def admit(self, job_id: str, **changes: object) -> None:
        self.clock.at += 1
        at = rfc3339(self.clock.at)
        wanted = self.engine.settle(spec(job_id, **changes))
        self.engine.admit(wanted, None, ticket=job_id, project_key=PROJECT, accepted_at=at, mode=Mode.QUEUED)

    def until(self, job_id: str, *states: JobState, cleaned: bool = False) -> Workload:
        limit = clocks.SYSTEM.monotonic() + 20
        answer = self.engine.show(job_id)
        while answer.workload.state not in states or (cleaned and answer.workload.cleaned_at is None):
            assert clocks.SYSTEM.monotonic() < limit, answer
            answer = self.engine.wait(job_id, answer.events[-1].number, 0.05)
        return answer.workload

    def states(self, job_id: str) -> list[str]:
        return [event.state.value for event in self.engine.show(job_id).events]

    def waits(self, job_id: str, words: str) -> None:
        """Wait until a job in line says that it waits for this."""
        self.that(lambda: words in (self.engine.show(job_id).workload.waiting_for or ""))

    def that(self, holds: object) -> None:
        """Wait until a condition holds."""
        limit = clocks.SYSTEM.monotonic() + 20
        while not holds():  # type: ignore[operator]
            assert clocks.SYSTEM.monotonic() < limit
            threading.Event().wait(0.005)
