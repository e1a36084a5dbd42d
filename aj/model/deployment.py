"""A deployment: long-running copies of one program on this machine that take jobs, and how each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from aj.base.noun import dataclass


@dataclass(frozen=True)
class Deployment:
    """What was asked for. Times are RFC 3339 UTC.

    `uid` is drawn when it is created, so a second one of the same name is another one. `revision` counts
    upgrades. `env` holds values and never leaves its file; `inherited` is what the shell lends. Once
    `deleting_since` is set, it only ends.
    """

    name: str
    uid: str
    argv: tuple[str, ...]
    replicas: int
    directory: str
    created_at: str
    updated_at: str
    jobs_per_replica: int = 1
    revision: int = 1
    grace_s: float = 30.0
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)
    umask: int | None = None
    deleting_since: str | None = None
    schema_version: int = 1


@dataclass(frozen=True)
class Start:
    """The newest start of one replica. `failures` counts starts in a row that ended soon; `due_at` is the next one.

    Without `ended_at` it may still run.
    """

    attempt: int = 0
    revision: int = 0
    failures: int = 0
    restarts: int = 0
    due_at: float = 0.0
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    message: str | None = None


class ReplicaState(StrEnum):
    """Where one replica stands."""

    WAITING = "waiting"  # for its next start
    STARTING = "starting"  # it runs, and has not asked for work yet
    READY = "ready"  # it has asked for work
    BUSY = "busy"  # every slot of it holds a job
    ENDING = "ending"  # it was told to end
    ENDED = "ended"


@dataclass(frozen=True)
class Holding:
    """A job in a slot of a replica. An `unreleased` one has ended, and the application has not put it away."""

    job_id: str
    execution_id: str
    slot: int
    claimed_at: str
    unreleased: bool = False


@dataclass(frozen=True)
class Replica:
    """One copy as it stands. `due_at` is when it is started again.

    `last_words` is the last line that the start before wrote, to its error log where that has one, and `last_logs`
    the folder of that start's logs; both are None for a replica that did not end by itself.
    """

    slot: int
    state: ReplicaState
    attempt: int
    revision: int
    restarts: int
    pid: int | None = None
    started_at: str | None = None
    due_at: str | None = None
    exit_code: int | None = None
    message: str | None = None
    logs: str | None = None
    last_words: str | None = None
    last_logs: str | None = None


@dataclass(frozen=True)
class DeploymentStatus:
    """A deployment with its replicas and the jobs that they hold. `ready` counts replicas that take or hold jobs."""

    name: str
    uid: str
    state: str
    command: str
    directory: str
    replicas: int
    jobs_per_replica: int
    ready: int
    busy: int
    queued: int
    unreleased: int
    revision: int
    created_at: str
    updated_at: str
    managed: bool = False
    deleting_since: str | None = None
    members: tuple[Replica, ...] = ()
    jobs: tuple[Holding, ...] = ()
