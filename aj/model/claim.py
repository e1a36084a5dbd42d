"""A claim: one replica of a deployment takes one queued job, and what became of that.

A job that is sent to a deployment carries its id alone. A replica that wants work finds such a job,
draws an id for the execution, and asks for exactly that job at exactly that point of its history. So a
claim that is repeated, late or doubled is the same claim, and two replicas never get one job.
"""

from __future__ import annotations

from enum import StrEnum

from aj.base.noun import dataclass

LONGEST_MESSAGE = 4096  # characters that an application may say about the end of a job
LONGEST_WAIT_S = 20.0  # one question for a job, a cancellation or a claim waits no longer than this


class Ending(StrEnum):
    """How an execution ended: four words of the application, and three of ours."""

    COMPLETED = "completed"
    ERRORED = "errored"
    INVALID = "invalid"
    RETRYABLE = "retryable"
    LOST = "lost"  # its replica ended
    CLEANED = "cleaned"  # the job was terminated, and the application has put its work away
    FENCED = "fenced"  # the job was terminated, and the replica was ended since it did not say so


SAID = (Ending.COMPLETED, Ending.ERRORED, Ending.INVALID, Ending.RETRYABLE)


class ClaimState(StrEnum):
    """What became of the first claim of one submission."""

    PENDING = "pending"
    CLAIMED = "claimed"
    EXPIRED = "expired"
    TERMINATED = "terminated"
    CHANGED = "changed"


@dataclass(frozen=True)
class Bearer:
    """Who asks: one start of one replica of a deployment. `uid` tells deployments of one name apart."""

    deployment: str
    uid: str
    slot: int
    attempt: int


@dataclass(frozen=True)
class Execution:
    """One time that a job was taken up. `previous` is the execution before it; `ending` is None while it is held."""

    id: str
    revision: int
    previous: str | None
    slot: int
    attempt: int
    claimed_at: str
    ending: Ending | None = None
    ended_at: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Targeted:
    """What a job that was sent to a deployment has beyond every job.

    `nonce` is drawn by the call that admitted the job. `claimed` tells of this submission; `retries` counts the
    tries that the application asked for. `held` has a slot of a replica; `last` is the newest that has none.
    """

    deployment: str
    nonce: str = ""
    claimed: bool = False
    claimed_at: str | None = None
    retries: int = 0
    held: Execution | None = None
    last: Execution | None = None


@dataclass(frozen=True)
class Candidate:
    """A queued job that a replica may claim, and the point of its history at which it stands."""

    job_id: str
    submission_revision: int
    previous_execution_id: str | None


@dataclass(frozen=True)
class SelectedJob:
    """A job that a claim has started."""

    job_id: str
    submission_revision: int
    execution_id: str
    previous_execution_id: str | None
    deployment: str
    claimed_at: str
