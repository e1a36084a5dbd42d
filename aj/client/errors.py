"""What a caller of the Python client may want to catch by name, besides the errors that everybody raises.

TimedOut
└─ WorkloadWaitTimeout       `wait` gave up; the job goes on
JobFailed                    `wait`: the job ended otherwise than well
├─ JobSubmissionExpired      nobody claimed it in time: it never ran, and never will
└─ JobSubmissionTerminated   its user ended it before anybody claimed it
Refused
└─ JobSubmissionChanged      it was submitted again meanwhile: this submission is history
OutcomeUnknown
└─ JobSubmissionUncertain    the answer to a submission was lost; `job` is its handle
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.base.errors import JobFailed, OutcomeUnknown, Refused, TimedOut

if TYPE_CHECKING:
    from aj.client.job import Job


class WorkloadWaitTimeout(TimedOut):
    """The time of a `wait` ran out. Nothing was stopped: the job goes on."""


class JobSubmissionExpired(JobFailed):
    """No replica claimed the submission before its deadline: it never started, and cannot start any more."""

    default_code = "claim-deadline-expired"


class JobSubmissionTerminated(JobFailed):
    """The submission was terminated before any replica claimed it."""

    default_code = "terminated"


class JobSubmissionChanged(Refused):
    """The job was submitted again, so the submission that was asked about is history."""

    default_code = "submission-changed"


class JobSubmissionUncertain(OutcomeUnknown):
    """The answer to a submission was lost. `job` asks about it: it may be there or not."""

    def __init__(self, message: str, *, job: Job, hint: str | None, details: Mapping[str, object]) -> None:
        super().__init__(message, hint=hint, details=details)
        self.job = job
