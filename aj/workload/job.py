"""A job that this program has claimed: what it is, whether it was cancelled, and how it ends."""

from __future__ import annotations

from aj.base.errors import Refused
from aj.model.claim import LONGEST_MESSAGE, LONGEST_WAIT_S, Ending, SelectedJob
from aj.wire import paths
from aj.wire.deployment import Cancellation, Put, Said
from aj.wire.messages import Done
from aj.workload.speech import Speech

TERMINATED, OVER = "terminated", "execution-over"


class JobTerminated(Refused):
    """The job was terminated by its user before this program said how it ended. Its slot is free again."""

    default_code = TERMINATED


class ExecutionOver(Refused):
    """This execution has the job no more: it ended in another way, or the job went to another replica."""

    default_code = OVER


class CurrentJob:
    """One claimed job. Say how it ends by exactly one of `complete`, `error`, `invalid` and `retry`.

    Each may be called again after an error: the daemon takes it once. Safe between threads.
    """

    def __init__(self, selected: SelectedJob, speech: Speech) -> None:
        self.selected = selected
        self._speech = speech

    def __repr__(self) -> str:
        return f"CurrentJob({self.id!r})"

    @property
    def id(self) -> str:
        """The id of the job, by which the program finds what it has to do."""
        return self.selected.job_id

    def complete(self) -> None:
        """End the job well. Raises JobTerminated, ExecutionOver, DaemonError."""
        self._say(Ending.COMPLETED, None)

    def error(self, message: str) -> None:
        """End the job as errored. Raises as `complete`."""
        self._say(Ending.ERRORED, message)

    def invalid(self, message: str) -> None:
        """End the job as one that can never work. Raises as `complete`."""
        self._say(Ending.INVALID, message)

    def retry(self, message: str) -> None:
        """Put the job back into the line; it is due again after a while. Raises as `complete`."""
        self._say(Ending.RETRYABLE, message)

    def cancelled(self, timeout: float = 0.0) -> bool:
        """Tell whether the user has terminated the job, waiting for that at most so many seconds (up to 20).

        When it has, stop the work and call `cleanup`. Raises DaemonError.
        """
        where, wait_s = (self.selected.deployment, self.id), round(min(timeout, LONGEST_WAIT_S), 3)
        query: dict[str, str | int | float | None] = {"execution": self.selected.execution_id, "timeout_s": wait_s}
        return self._speech.ask(Cancellation, paths.WORK_CANCELLATION, *where, query=query).cancelled

    def cleanup(self) -> None:
        """Say that the work of a terminated job is put away, which frees its slot. Raises Refused, DaemonError."""
        put = Put(self.selected.execution_id)
        self._speech.ask(Done, paths.WORK_CLEANUP, self.selected.deployment, self.id, body=put)

    def _say(self, outcome: Ending, message: str | None) -> None:
        words = None if outcome is Ending.COMPLETED else (message or outcome.value)[:LONGEST_MESSAGE]
        said = Said(self.selected.execution_id, outcome, words)
        try:
            self._speech.ask(Done, paths.WORK_OUTCOME, self.selected.deployment, self.id, body=said)
        except Refused as error:
            if error.code == TERMINATED:
                self.cleanup()  # whoever says how a job ended works on it no more
                raise JobTerminated(error.message) from error
            if error.code == OVER:
                raise ExecutionOver(error.message) from error
            raise
