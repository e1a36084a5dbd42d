"""What crosses the socket about deployments, and what a replica and the daemon tell each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.base.noun import dataclass
from aj.model.claim import Candidate, ClaimState, Ending
from aj.model.deployment import DeploymentStatus


@dataclass(frozen=True)
class Create:
    """Make a deployment. `env` holds values; `inherited` is what the shell lends."""

    name: str
    argv: tuple[str, ...]
    replicas: int
    directory: str
    jobs_per_replica: int = 1
    grace_s: float = 30.0
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)
    umask: int | None = None


@dataclass(frozen=True)
class Upgrade:
    """Change a deployment; None leaves a part as it is. With `force` busy replicas do not end their jobs first."""

    argv: tuple[str, ...] | None = None
    replicas: int | None = None
    directory: str | None = None
    jobs_per_replica: int | None = None
    env: Mapping[str, str] | None = field(default=None, repr=False)
    inherited: Mapping[str, str] | None = field(default=None, repr=False)
    force: bool = False


@dataclass(frozen=True)
class Delete:
    """Remove a deployment. With `force` its unfinished jobs are terminated; else they are a reason to refuse."""

    force: bool = False


@dataclass(frozen=True)
class DeploymentAnswer:
    """One deployment as it stands."""

    deployment: DeploymentStatus
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeploymentList:
    """All deployments of this user, by name."""

    deployments: tuple[DeploymentStatus, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Targeting:
    """Send a job to a deployment. `nonce` is drawn by the caller, so that its own job is known again.

    Without a first claim within `timeout_s` seconds of admission it fails, and never starts.
    """

    id: str
    nonce: str = ""
    timeout_s: float | None = None
    agent: str | None = None
    session: str | None = None
    session_title: str | None = None


@dataclass(frozen=True)
class Found:
    """A job that may be claimed, or none just now."""

    candidate: Candidate | None


@dataclass(frozen=True)
class Claiming:
    """Take a job, exactly where it was seen. `execution_id` is drawn by the replica before it is sent."""

    execution_id: str
    submission_revision: int
    previous_execution_id: str | None = None


@dataclass(frozen=True)
class Said:
    """How an execution ended."""

    execution_id: str
    outcome: Ending
    message: str | None = None


@dataclass(frozen=True)
class Put:
    """The work of a terminated execution is put away."""

    execution_id: str


@dataclass(frozen=True)
class Cancellation:
    """Whether the job of an execution was terminated."""

    cancelled: bool


@dataclass(frozen=True)
class ClaimAnswer:
    """What became of the first claim of a submission."""

    outcome: ClaimState
    claimed: bool
    submission_revision: int
    claim_deadline_at: str | None = None
