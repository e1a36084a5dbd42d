"""The states of a job, and every move that is allowed between them, with who makes it.

    waiting    queued
    setup      provisioning -> initializing -> downloading -> syncing -> starting
    execute    running
    preserve   finalizing
    return     retrying (a setup step failed), recovering (the host was lost); both go back to queued
    final      completed, errored, failed, invalid, terminated

A final state is left only by a resubmission. The first final state wins; later ones are conflicts.
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """One word for where a job stands."""

    QUEUED = "queued"
    PROVISIONING = "provisioning"
    INITIALIZING = "initializing"
    DOWNLOADING = "downloading"
    SYNCING = "syncing"
    STARTING = "starting"
    RUNNING = "running"
    FINALIZING = "finalizing"
    RETRYING = "retrying"
    RECOVERING = "recovering"
    COMPLETED = "completed"
    ERRORED = "errored"
    FAILED = "failed"
    INVALID = "invalid"
    TERMINATED = "terminated"

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @property
    def is_setup(self) -> bool:
        """Whether the job holds one of the places in the setup pipeline."""
        return self in SETUP


class Mover(StrEnum):
    """Who may make a move."""

    SUBMIT = "submit"
    SCHEDULER = "scheduler"
    DRIVER = "driver"
    MONITOR = "monitor"
    USER = "user"


S = JobState
SETUP = (S.PROVISIONING, S.INITIALIZING, S.DOWNLOADING, S.SYNCING, S.STARTING)
FINAL = frozenset({S.COMPLETED, S.ERRORED, S.FAILED, S.INVALID, S.TERMINATED})

_MOVES: dict[tuple[JobState, JobState], frozenset[Mover]] = {}


def _allow(source: JobState, *targets: JobState, by: Mover) -> None:
    for target in targets:
        _MOVES[source, target] = _MOVES.get((source, target), frozenset()) | {by}


_allow(S.QUEUED, S.PROVISIONING, S.FAILED, by=Mover.SCHEDULER)
_allow(S.QUEUED, S.RUNNING, S.INVALID, by=Mover.DRIVER)  # a claim by a running replica; a refused image
for _at, _step in enumerate(SETUP):
    _allow(_step, *SETUP[_at + 1 :], S.RUNNING, S.RETRYING, S.FAILED, S.INVALID, by=Mover.DRIVER)
_allow(S.RETRYING, S.QUEUED, by=Mover.SCHEDULER)
_allow(S.RUNNING, S.FINALIZING, S.COMPLETED, S.ERRORED, S.FAILED, by=Mover.DRIVER)
_allow(S.RUNNING, S.RETRYING, S.INVALID, by=Mover.DRIVER)  # what an application may say of a job
_allow(S.RUNNING, S.RECOVERING, by=Mover.MONITOR)
_allow(S.FINALIZING, S.COMPLETED, S.ERRORED, S.FAILED, by=Mover.DRIVER)
_allow(S.FINALIZING, S.RECOVERING, by=Mover.MONITOR)
_allow(S.RECOVERING, S.RUNNING, S.QUEUED, S.FAILED, by=Mover.MONITOR)
for _state in S:
    if not _state.is_final:
        _allow(_state, S.TERMINATED, by=Mover.USER)
    else:
        _allow(_state, S.QUEUED, by=Mover.USER)  # a resubmission, once everything is cleaned

MOVES = dict(_MOVES)


def may_move(source: JobState, target: JobState, by: Mover) -> bool:
    """Tell whether this mover may make this move."""
    return by in MOVES.get((source, target), frozenset())
