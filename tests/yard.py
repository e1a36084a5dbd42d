"""A yard of jobs: a real engine with real processes, on a test's own folders."""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aj.backend.local import attempt, limits
from aj.backend.local.driver import LocalDriver
from aj.base import clock as clocks
from aj.base import proc
from aj.base.errors import AjError
from aj.bucket.door import Door
from aj.engine.buckets import JobBuckets
from aj.engine.janitor import Keep
from aj.engine.jobs import KEEP, Jobs
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.state import JobState
from aj.model.ticket import Mode
from aj.model.workload import Workload
from aj.store import joblogs, jobs
from aj.wire.messages import JobAnswer
from tests.conftest import Home
from tests.jobs import EARLY, packed, spec

LIMIT_S = 30.0  # for one thing to happen; it is over in a fraction of that
PROJECT = "_none"


@dataclass
class Yard:
    """Jobs under one engine at a time; `again` puts another in its place, as a new daemon would."""

    home: Home
    root: Path
    slots: int = 4
    gpus: int | None = None
    keep: Keep = KEEP
    log: list[str] = field(default_factory=list)
    published: list[tuple[str, Mapping[str, Json]]] = field(default_factory=list)
    ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    engine: Jobs = field(init=False)

    def __post_init__(self) -> None:
        self.home.layout.prepare()
        self.again()

    def again(self) -> Jobs:
        """Begin with an engine that knows only what is on disk."""
        driver = LocalDriver(self.home.layout, self.home.settings, slots=self.slots, gpus=self.gpus)
        publish = lambda topic, project, payload: self.published.append((project, payload))  # noqa: E731
        self.engine = Jobs(
            self.home.layout,
            {"local": driver},
            clocks.SYSTEM,
            publish,
            keep=self.keep,
            log=self.log.append,
            artifacts=JobBuckets(self.home.layout, self.door, clocks.SYSTEM),
        )
        return self.engine

    @property
    def door(self) -> Door:
        """What opens the buckets of this home."""
        return Door(self.home.layout, self.home.settings)

    def spec(self, *argv: str, **changes: object) -> JobSpec:
        """A request with an id of its own."""
        return spec(f"{next(self.ids):08x}", *argv, directory=str(self.root), **changes)

    def admit(self, wanted: JobSpec, files: Mapping[str, str] | None = None) -> str:
        """Submit, with a packed tree (one small file unless said otherwise), and return the id."""
        code = packed(self.home.layout, self.root, files or {"train.py": "print('hello')\n"})
        self.engine.admit(
            wanted, code, ticket=f"aj-{wanted.id}", project_key=PROJECT, accepted_at=EARLY, mode=Mode.DIRECT
        )
        return wanted.id

    def shell(self, line: str, files: Mapping[str, str] | None = None, **changes: object) -> str:
        """Submit a line of shell."""
        return self.admit(self.spec("sh", "-c", line, **changes), files)

    def until(self, job_id: str, *states: JobState, cleaned: bool = False) -> Workload:
        """Wait until the job is in one of the states (in any final one without), and return its record."""
        limit = clocks.SYSTEM.monotonic() + LIMIT_S
        answer = self.engine.show(job_id)
        while not self._is_there(answer.workload, states, cleaned):
            left = limit - clocks.SYSTEM.monotonic()
            assert left > 0, f"{answer.workload}\n{answer.events}\n{self.log}"
            answer = self.engine.wait(job_id, answer.events[-1].number, min(left, 1.0))
        return answer.workload

    def _is_there(self, job: Workload, states: tuple[JobState, ...], cleaned: bool) -> bool:
        there = job.state in states if states else job.state.is_final
        assert there or not job.state.is_final, f"ended otherwise: {job}"
        return there and (job.cleaned_at is not None or not cleaned)

    def done(self, job_id: str) -> Workload:
        """Wait for the end with everything cleaned up."""
        return self.until(job_id, cleaned=True)

    def show(self, job_id: str) -> JobAnswer:
        return self.engine.show(job_id)

    def folder(self, job_id: str) -> Path:
        return self.home.layout.job(job_id)

    def work(self, job_id: str, node: int = 0) -> Path:
        return jobs.work_folder(self.folder(job_id), node)

    def output(self, job_id: str, rank: int | None = None, number: int | None = None) -> str:
        """Return what a job wrote, all streams in order."""
        chunks = joblogs.read(self.folder(job_id), attempt=number, rank=rank)
        return b"".join(chunk.data for chunk in chunks).decode()

    def supervisor(self, job_id: str, number: int = 1) -> proc.Identity:
        found = attempt.supervisor(jobs.attempt_folder(self.folder(job_id), number))
        assert found is not None
        return found

    def wait_for(self, path: Path) -> str:
        """Wait for a job to write a file with a whole line, and return it."""
        limit = clocks.SYSTEM.monotonic() + LIMIT_S
        while True:
            with contextlib.suppress(OSError):
                if (text := path.read_text()).endswith("\n"):
                    return text
            assert clocks.SYSTEM.monotonic() < limit, f"{path} did not appear; {self.log}"
            clocks.SYSTEM.sleep(0.01)

    def close(self) -> None:
        """End everything that was started here, whatever the test did."""
        self.engine.stop()
        for place in self.home.layout.jobs.glob("*/attempts/*"):
            who = attempt.supervisor(place)
            if who is not None and proc.send(who, signal.SIGKILL):
                proc.wait_any(who, 5)
            if who is not None:
                proc.reap(who.pid)
        for job in jobs.listing(self.home.layout, lambda _: None):
            with contextlib.suppress(AjError):
                LocalDriver(self.home.layout, self.home.settings).teardown(job, self.folder(job.id))


def is_gone(pid: int) -> bool:
    """Whether no process of that number runs any more, and soon if not now."""
    started = proc.start_time(pid)
    return started is None or proc.wait_gone(proc.Identity(pid, started, proc.boot_id()), 5)


def has_groups() -> bool:
    """Whether this machine lets us make control groups with a memory limit."""
    from aj.model.workload import Needs

    found = limits.setup("probe", Needs(memory_bytes=1 << 30))
    limits.remove(found.groups)
    return not found.notes
