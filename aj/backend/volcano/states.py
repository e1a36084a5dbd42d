"""What Volcano's words for the phase of a job mean to us. A word that is new means nothing certain."""

from __future__ import annotations

from collections.abc import Mapping

from aj.model.state import JobState

WORDS: Mapping[str, JobState] = {
    "Pending": JobState.QUEUED,
    "Restarting": JobState.STARTING,
    "Running": JobState.RUNNING,
    "Completing": JobState.RUNNING,
    "Completed": JobState.COMPLETED,
    "Failed": JobState.ERRORED,
    "Aborting": JobState.ERRORED,
    "Aborted": JobState.ERRORED,
    "Terminating": JobState.ERRORED,
    "Terminated": JobState.ERRORED,
}


def state_of(phase: str, *, is_cancelled: bool = False) -> JobState | None:
    """Return our word for a phase, or None when theirs does not tell. What its user ended has not failed."""
    found = WORDS.get(phase)
    return JobState.TERMINATED if is_cancelled and found is JobState.ERRORED else found
