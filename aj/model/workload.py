"""A Workload: the record of one job that our own engine drives, and the events of its life.

The field names are those of the published job record, so they are spelled `completedAt` where they
leave the program; here they are Python names and the codec of the view spells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.base import text, units
from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.model.bucket import Attached
from aj.model.claim import Targeted
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.state import JobState


@dataclass(frozen=True)
class Needs:
    """What a job takes of a machine: `cpus` may be a fraction, memory in bytes; None means no claim."""

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int = 0


def cpus_words(count: float) -> str:
    """Write a number of cpus, which may be a fraction."""
    return f"{count:g} {'cpu' if count == 1 else 'cpus'}"


def check_fits(needs: Needs, whole: Needs) -> None:
    """Raise Refused when a job is larger than the whole place, with both numbers and where the larger one is said."""
    if needs.cpus and whole.cpus is not None and needs.cpus > whole.cpus:
        hint = "ask for fewer: `target.cpus` of the template, times its nodes (`-n`)"
        raise _too_large(cpus_words(needs.cpus), f"{whole.cpus:g}", hint)
    if needs.memory_bytes and whole.memory_bytes is not None and needs.memory_bytes > whole.memory_bytes:
        hint = "ask for less: `target.memory` of the template, times its nodes (`-n`)"
        raise _too_large(f"{units.size(needs.memory_bytes)} of memory", units.size(whole.memory_bytes), hint)
    if needs.gpus > whole.gpus:
        hint = (
            "ask for fewer: `target.gpus` of the template, `-p`; if there are more, `aj config set --user local.gpus N`"
        )
        raise _too_large(text.plural(needs.gpus, "GPU"), str(whole.gpus), hint)


def _too_large(wanted: str, there: str, hint: str) -> Refused:
    return Refused(f"the job needs {wanted}, and this place has {there}", code="too-large", hint=hint)


@dataclass(frozen=True)
class Retry:
    """When the next try may start, and why the last one ended. Times are seconds since the epoch."""

    attempt: int
    earliest_at: float
    latest_at: float
    cause: str
    message: str


@dataclass(frozen=True)
class Host:
    """One machine, or share of a machine, that a job was given. Times are RFC 3339 UTC.

    It is paid for from `created_at` to `ended_at`, whatever state the job is in. `released_at` is when the
    place confirmed that nothing of it is left; until then no other is taken for the job. `price` is what an
    hour of it cost when the job got it, in millionths of a US dollar; None when nobody had said it.
    """

    created_at: str
    ended_at: str | None = None
    released_at: str | None = None
    price: int | None = None

    @property
    def is_awaiting_release(self) -> bool:
        """Whether it is no longer of use, and not yet confirmed to be gone."""
        return self.ended_at is not None and self.released_at is None


@dataclass(frozen=True)
class Event:
    """One change of state. `number` counts from 1 within a job."""

    number: int
    state: JobState
    at: str
    message: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """One driven job as it stands now. Times are RFC 3339 UTC.

    `attempt` counts starts of the processes (1 for the first), `setup_attempt` tries to get there
    since the last success, `recoveries` losses of the host. `last_event` is the newest event: the
    record is written first and is the truth, so an event line that a crash kept from the disk is
    added from it. `resubmit_when_clean` is a promise to run it again as soon as the teardown succeeded.
    `recover_for` says why its processes are being ended so that it runs again. `spot` jobs survive the loss of
    their host, which `preempted` says was asked for; `can_restart` then tells whether that host comes back.
    `hosts` are all it was given, the oldest first. `ran_s` counts the seconds that its processes ran before
    the latest start, and `max_runtime_s` limits the whole; `max_cost` limits what the hosts of this submission
    cost, in millionths of a US dollar. `image_digest` is what a tag meant at admission,
    `attached` the buckets that were found then.
    `facts` belongs to the backend's driver: what it needs to go on after the daemon was killed.
    `targeted` is there when the job was sent to a deployment.
    """

    id: str
    name: str
    service: str
    template: str
    project: str | None
    project_key: str
    ticket: str
    state: JobState
    created_at: str
    submitted_at: str
    needs: Needs
    code: CodeRef | None = None
    command: str = ""
    image: str | None = None
    nodes: int = 1
    processes_per_node: int = 1
    attempt: int = 0
    setup_attempt: int = 0
    recoveries: int = 0
    submission_revision: int = 0
    deadline_at: float | None = None
    retry: Retry | None = None
    waiting_for: str | None = None
    message: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    cleaned_at: str | None = None
    cleanup_error: str | None = None
    data_error: str | None = None
    exit_code: int | None = None
    oom_killed: bool = False
    reason: str | None = None
    terminating_since: str | None = None
    grace_s: float | None = None
    recover_for: str | None = None
    resubmit_when_clean: bool = False
    resubmit_timeout_s: float | None = None
    resubmit_image_digest: str | None = None
    spot: bool = False
    preempted: bool = False
    can_restart: bool = False
    hosts: tuple[Host, ...] = ()
    ran_s: float = 0.0
    max_runtime_s: float | None = None
    max_cost: int | None = None
    image_digest: str | None = None
    attached: Attached | None = None
    workdir: str | None = None
    notes: tuple[str, ...] = ()
    agent: str | None = None
    session: str | None = None
    session_title: str | None = None
    last_event: Event | None = None
    spec: JobSpec | None = field(default=None, repr=False)
    facts: Mapping[str, Json] = field(default_factory=dict, repr=False)
    targeted: Targeted | None = None
    schema_version: int = 1

    @property
    def host(self) -> Host | None:
        """The host that it has, or had last."""
        return self.hosts[-1] if self.hosts else None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it: final and cleaned."""
        return self.state.is_final and self.cleaned_at is not None

    @property
    def claimed(self) -> bool:
        """Whether a replica ever took this submission up; False for a job that was sent to no deployment."""
        return self.targeted is not None and self.targeted.claimed

    @property
    def holds_slot(self) -> bool:
        """Whether a replica holds it in a slot."""
        return self.targeted is not None and self.targeted.held is not None
