"""What the service's words for the state of a job mean to us. A word that is new means nothing certain."""

from __future__ import annotations

from collections.abc import Mapping

from aj.model.state import JobState

WORDS: Mapping[str, JobState | None] = {
    "NotStarted": JobState.QUEUED,
    "Queued": JobState.QUEUED,
    "Scheduled": JobState.QUEUED,
    "Paused": JobState.QUEUED,  # taken off its machines, and in line again
    "Starting": JobState.STARTING,
    "Provisioning": JobState.STARTING,
    "Preparing": JobState.STARTING,
    "Running": JobState.RUNNING,
    "Finalizing": JobState.RUNNING,
    "CancelRequested": JobState.RUNNING,
    "NotResponding": JobState.RUNNING,
    "Completed": JobState.COMPLETED,
    "Failed": JobState.ERRORED,
    "Canceled": JobState.TERMINATED,
    "Unknown": None,
}


def state_of(word: str) -> JobState | None:
    """Return our word for a state, or None when theirs does not tell: such a job is never taken as ended."""
    return WORDS.get(word)
