"""What a submission needs of the house: services, jobs of our own, packing, ids, and an orderly entrance."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from aj.backend.protocol import Backend, Traits
from aj.base.clock import Clock
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.engine.steps import Steps
from aj.model.code import CodeRef
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.ticket import Mode
from aj.model.workload import Workload
from aj.store import journal
from aj.store.archives import Archives
from aj.store.layout import Layout


class Jobs(Protocol):
    """The jobs that our own engine drives, as submissions need them.

    `open_project` is called with a project's key before one of its jobs is changed.
    """

    open_project: Callable[[str], object] | None

    def settle(self, spec: JobSpec) -> JobSpec:
        """Return the request with what must be known before it is admitted. Changes nothing. Raises AjError."""

    def admit(
        self, spec: JobSpec, code: CodeRef | None, *, ticket: str, project_key: str, accepted_at: str, mode: Mode
    ) -> Handle:
        """Make a job durable, so that it will run. The same job again gives the same handle.

        Raises AjError, and then there is no such job.
        """

    def find(self, aj_id: str) -> Workload | None:
        """Return a job by its AJ ID; None when there is definitely none."""

    def adopt(self, project_key: str) -> None:
        """Take up the unfinished jobs of a project."""

    def running(self) -> int:
        """How many hold a place."""

    def queued(self) -> int:
        """How many wait for one."""

    def unfinished_projects(self) -> set[str]:
        """Return the keys of the projects with a job that needs a daemon."""

    def digests(self) -> set[str]:
        """Return the archives that a job may still need."""

    def stop(self) -> None:
        """Let go of all jobs; they go on under their supervisors."""


class Places(Protocol):
    """Where a service's name leads."""

    def traits(self, service: str) -> Traits:
        """Return the facts about a service. Raises UserError when there is none of that name."""

    def backend(self, service: str) -> Backend:
        """Return a handed-off service."""


@dataclass(frozen=True)
class Packed:
    """An archive, and what its user should know about the selection."""

    code: CodeRef
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Means:
    """What a submission needs of the house."""

    layout: Layout
    clock: Clock
    settings: Settings
    debug: bool
    places: Places
    jobs: Jobs
    pack: Callable[[JobSpec], Packed]
    archives: Archives
    ids: journal.KnownIds
    entrance: Entrance
    steps: Steps


class Entrance:
    """Lets one call for each key in at a time, so that a call and its repetition do not pass each other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: set[str] = set()

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Wait until nobody else is inside with this key, and go in."""
        with self._changed:
            self._changed.wait_for(lambda: key not in self._inside)
            self._inside.add(key)
        try:
            yield
        finally:
            with self._changed:
                self._inside.remove(key)
                self._changed.notify_all()

    def wait_empty(self, timeout_s: float | None) -> bool:
        """Wait until nobody is inside; False when the time is over first."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._inside, timeout_s)

    @property
    def is_empty(self) -> bool:
        with self._changed:
            return not self._inside
