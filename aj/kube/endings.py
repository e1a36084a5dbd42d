"""How a job ends by our hand: it is told in the job who ended it, then exactly that job is deleted, once.

When an answer is lost, the job itself is looked at; only when that does not tell either, the outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from aj.base.errors import NotFound, OutcomeUnknown, Refused, Unavailable
from aj.base.noun import dataclass
from aj.kube import jobs
from aj.kube.client import Cluster
from aj.kube.jobs import Job


@dataclass(frozen=True)
class Ended:
    """What an end found: the job as it stood before, None when it was gone; `was_final` when it had ended already."""

    job: Job | None
    was_final: bool = False


def cancel(cluster: Cluster, name: str, *, is_final: Callable[[Job], bool]) -> Ended:
    """End a job, unless it has ended. Raises Refused without the right, OutcomeUnknown when nobody can tell."""
    job = jobs.find(cluster, name)
    if job is None or is_final(job):
        return Ended(job, was_final=True)
    return Ended(job, was_final=not _end(cluster, job))


def delete(cluster: Cluster, name: str) -> Ended:
    """Delete a job, whether it has ended or not. Raises as `cancel`."""
    job = jobs.find(cluster, name)
    if job is None:
        return Ended(None, was_final=True)
    return Ended(job, was_final=not _end(cluster, job))


def _end(cluster: Cluster, job: Job) -> bool:
    """Say who ends it, and delete it; False when it was gone."""
    try:
        jobs.mark_cancelled(cluster, job)
    except NotFound:
        return False
    except OutcomeUnknown:
        pass  # a word for whoever looks; the deletion is what counts
    try:
        return jobs.delete(cluster, job)
    except OutcomeUnknown as lost:
        return _is_gone(cluster, job, lost)
    except Refused as error:
        if error.code != "conflict":
            raise
        return _is_gone(cluster, job, OutcomeUnknown(error.message, details=error.details))


def _is_gone(cluster: Cluster, job: Job, lost: OutcomeUnknown) -> bool:
    """Return true when the job is not there any more, or is on its way out. Raises `lost` when nobody can tell."""
    try:
        after = jobs.find(cluster, job.name, job.namespace)
    except Unavailable:
        raise _unknown(job, lost) from lost
    if after is None or after.uid != job.uid or after.is_leaving:
        return True
    raise _unknown(job, lost) from lost


def _unknown(job: Job, lost: OutcomeUnknown) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"whether {job.name} was deleted is not known: {lost.message}",
        hint=f"`aj status {job.aj_id or job.name}` shows whether it is still there; asking again is safe",
        details=lost.details,
    )
