"""A ticket: one promised submission, from acceptance to its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from aj.base.noun import dataclass
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.json import Json


class TicketState(StrEnum):
    """Where a submission stands. `completed` means submitted; what the job then does is its own story."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_final(self) -> bool:
        return self in (TicketState.COMPLETED, TicketState.FAILED, TicketState.CANCELED)


class Outcome(StrEnum):
    """What is known of the submission itself."""

    SUBMITTED = "submitted"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NEVER_ARRIVED = "never-arrived"
    CANCELED = "canceled"


class Mode(StrEnum):
    """Whether somebody waits for it (`direct`) or it stands in line (`queued`)."""

    DIRECT = "direct"
    QUEUED = "queued"


T = TicketState
MOVES: Mapping[TicketState, frozenset[TicketState]] = {
    T.QUEUED: frozenset({T.RUNNING, T.CANCELED, T.FAILED}),
    T.RUNNING: frozenset({T.COMPLETED, T.FAILED}),
    T.FAILED: frozenset({T.COMPLETED, T.FAILED}),  # only an unknown outcome, by reconcile
    T.COMPLETED: frozenset(),
    T.CANCELED: frozenset(),
}


@dataclass(frozen=True)
class Fault:
    """An error as it is kept and sent: the class name of `aj.base.errors`, its words and its next step."""

    type: str
    code: str
    message: str
    hint: str | None = None
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Submitted:
    """What the place confirmed: its name for the job, a handle, and where a person can look.

    `matched_instances` are the types of machines that the job may get, the best first; `uploaded_bytes` is how
    much code was sent for it, 0 when all of it was there, None when code does not travel so.
    """

    azure_name: str | None
    handle: str
    portal_url: str | None = None
    note: str | None = None
    matched_instances: tuple[str, ...] = ()
    uploaded_bytes: int | None = None


@dataclass(frozen=True)
class Ticket:
    """One submission. `sequence` gives the order within a project; times are RFC 3339 UTC.

    `request` holds environment values: it lives only in the ticket's own file, is erased when the
    ticket is completed, canceled or pruned, and stays while failed so that it can be retried. `project`
    is the key of its queue. `body` is the SHA-256 of what was asked for, by which the same call again is
    known. `git` is what the working tree was at acceptance: `commit` and `dirty`. `code_reused` tells whether
    the very same code had been packed and kept before, None where it is uploaded: then the result tells.
    """

    ticket: str
    id: str
    mode: Mode
    state: TicketState
    name: str
    service: str
    template: str
    sequence: int
    created_at: str
    outcome: Outcome | None = None
    started_at: str | None = None
    finished_at: str | None = None
    detail: str | None = None
    error: Fault | None = None
    code: CodeRef | None = None
    code_reused: bool | None = None
    result: Submitted | None = None
    retried_from: str | None = None
    retried_as: str | None = None
    project: str = ""
    env_names: tuple[str, ...] = ()
    git: Mapping[str, Json] | None = None
    body: str | None = None
    agent: str | None = None
    session: str | None = None
    session_title: str | None = None
    request: JobSpec | None = field(default=None, repr=False)
    schema_version: int = 1
