"""What every place that runs jobs promises. One conformance suite tests all of them.

Two kinds. A *handed-off* service has a scheduler of its own that owns the job's life: `Backend` is
all it has. A *driven* service is run by our own engine: it also fits `Driver`, a set of steps, each
of which may be called again after a crash and picks up what is already there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from aj.base.noun import dataclass

if TYPE_CHECKING:  # the registry of services is read at every start, and needs none of these nouns
    from aj.base.errors import AjError
    from aj.base.settings import Settings
    from aj.model.code import CodeRef
    from aj.model.commandjob import Code
    from aj.model.handle import Handle
    from aj.model.job import JobSpec
    from aj.model.json import Json
    from aj.model.state import JobState
    from aj.model.workload import Needs, Workload
    from aj.store.config import Config
    from aj.store.layout import Layout
    from aj.wire.messages import Exec, ExecPlan


@dataclass(frozen=True)
class Traits:
    """Facts about a service that others ask for instead of its name.

    `submits` is False for a service whose templates can be checked and rendered but not yet sent; `answers` is
    False for a place that cannot be asked about a job once it has it. With `manifest` it takes objects of
    Kubernetes, which a dry run can show. One that `needs_experiment` refuses a job without.
    """

    driven: bool
    moves_code: bool
    native: bool = False
    submits: bool = True
    is_local: bool = False
    answers: bool = True
    manifest: bool = False
    needs_experiment: bool = False

    def spelled(self, handle: Handle) -> str:
        """Return the word for where a job is: a workspace by colons, any other place as its handle begins."""
        return handle.place.replace("/", ":") if self.native else str(handle).rpartition("/")[0]


@dataclass(frozen=True)
class Request:
    """The exact thing that would be sent: where, and the whole body.

    `instances` are the types of machines that it may get, the best first, where the place chooses among several.
    Without `is_named` the place gives the job a name of its own, and tells it afterwards or never.
    """

    service: str
    name: str
    body: Mapping[str, Json] = field(repr=False)
    instances: tuple[str, ...] = field(default=(), kw_only=True)
    is_named: bool = field(default=True, kw_only=True)


@dataclass(frozen=True)
class Status:
    """What a place says of a job: our word when there is one, and its own words. `unknown` is None."""

    state: JobState | None
    words: str
    detail: str | None = None


class Backend(Protocol):
    """One place that can run jobs."""

    traits: Traits

    def plan(self, spec: JobSpec, code: CodeRef | None, *, accepted_at: str) -> Request:
        """Build the exact request. Reads facts, changes nothing. Raises UserError or Refused."""

    def submit(self, request: Request) -> Handle:
        """Send it. Sending the same request twice yields the same handle."""

    def find(self, spec: JobSpec) -> Handle | None:
        """Look for what a submission of this spec would have made; None when it is definitely absent.

        Raises OutcomeUnknown when the place cannot tell. Changes nothing.
        """

    def status(self, handle: Handle) -> Status | None:
        """None when the place has never heard of it or has forgotten it."""

    def cancel(self, handle: Handle) -> None:
        """Ask for the end. No error when it has already ended."""


@runtime_checkable
class Prepares(Protocol):
    """A place where something must lie ready before a job is sent, such as its code."""

    def prepare(self, request: Request) -> None:
        """Bring it there; the same again finds it there. Nothing is submitted yet. Raises what stops the job."""


class Preview(Protocol):
    """Builds the body of a request as far as it is known without asking anybody; the rest says so."""

    def __call__(self, spec: JobSpec, code: Code, *, cloud: str, accepted_at: str) -> dict[str, Json]:
        """Return the body. Raises UserError on what the service would not take."""


class Shown(Protocol):
    """What a service would send as objects of Kubernetes, in their order, and what its user should know of them."""

    @property
    def objects(self) -> Sequence[Mapping[str, Json]]:
        """The objects; values of secrets are not in them."""

    @property
    def notes(self) -> Sequence[str]:
        """Sentences for the user."""


class Manifest(Protocol):
    """Builds the objects that a service would send, from files of this machine alone."""

    def __call__(
        self, spec: JobSpec, config: Config, settings: Settings, *, digest: str, archive_sha256: str, accepted_at: str
    ) -> Shown:
        """Return them. Raises UserError on what the cluster would not take, ConfigError."""


class Foresight(Protocol):
    """Tells what a submission would be refused for, as far as files of this machine and the machine itself say."""

    def __call__(self, spec: JobSpec, config: Config, settings: Settings, layout: Layout) -> Iterator[AjError]:
        """Yield each refusal as a submission would word it; nothing is asked, changed or started."""


class Fate(StrEnum):
    """What became of the processes of a job."""

    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


@dataclass(frozen=True)
class Observation:
    """One look at a started job. `exit_code` is the user's own (128 + N for signal N)."""

    fate: Fate
    exit_code: int | None = None
    oom_killed: bool = False
    in_setup: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    message: str | None = None


class SetupFailed(Exception):
    """A setup step did not work; trying again may help. `cause` is capacity, quota or other.

    `replace` tells whether another host is needed for that; None leaves it to the step that failed.
    """

    def __init__(self, message: str, cause: str = "other", *, replace: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.replace = replace


class SetupInvalid(Exception):
    """A setup step can never work for this job."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@runtime_checkable
class Driver(Protocol):
    """The steps by which our engine runs a job at one place.

    Every step is called with the record as it stands and returns facts to keep in it (merged into
    `Workload.facts`); a list of `notes` among them is for the user and goes to `Workload.notes`. A step
    that was cut off by a crash is called again with the same record. Only a step and `exec_plan` get the
    record with its `spec`. The fact `gpu_indices` holds the numbers of the GPUs that the engine chose.
    """

    def steps(self, job: Workload) -> Sequence[JobState]:
        """Return the setup states that this job goes through here, in their order; those of its data not among them."""

    def capacity(self) -> Needs:
        """What the whole place has."""

    def slots(self) -> int:
        """How many jobs may hold a place at once, from setup to the end of their processes."""

    def needs(self, spec: JobSpec) -> Needs:
        """What this job takes. Raises Refused when the place could never give it, UserError on bad options."""

    def step(self, state: JobState, job: Workload, folder: Path) -> Mapping[str, Json]:
        """Do the work of one setup state. Raises SetupFailed or SetupInvalid."""

    def observe(self, job: Workload, folder: Path) -> Observation:
        """Look at the processes; never waits."""

    def wait(self, job: Workload, folder: Path, stop: threading.Event) -> Observation:
        """Wait until the processes ended or were lost, or `stop` is set (then as `observe`)."""

    def terminate(self, job: Workload, folder: Path, grace_s: float) -> None:
        """Ask the processes to end: TERM at once, KILL after the grace. Returns without waiting."""

    def exec_plan(self, job: Workload, folder: Path, asked: Exec) -> ExecPlan:
        """Say how to run a command inside the running job. Raises Refused when it does not run."""

    def revive(self, job: Workload, folder: Path) -> None:
        """Bring a lost host back as it was, so that `step` can start the job there again.

        Raises SetupFailed when it stays lost.
        """

    def release(self, job: Workload, folder: Path) -> None:
        """Give a host back that is of no use any more, and confirm that nothing of it is left.

        Raises AjError to be tried again.
        """

    def teardown(self, job: Workload, folder: Path) -> None:
        """Leave nothing behind but logs, outputs and the record. Raises AjError to be tried again."""


@runtime_checkable
class Rehearses(Protocol):
    """A place where the loss of a host can be played."""

    def preempt(self, job: Workload, folder: Path) -> None:
        """Take the job's host away as a place does that wants it back: at once, and without a word."""
