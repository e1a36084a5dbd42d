"""One job in the hands of a Python program: where it stands, what it writes, its end."""

from __future__ import annotations

import contextlib
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import proc
from aj.base.clock import SYSTEM
from aj.base.errors import AjError, JobFailed, TimedOut
from aj.base.noun import dataclass
from aj.client.errors import (
    JobSubmissionChanged,
    JobSubmissionExpired,
    JobSubmissionTerminated,
    WorkloadWaitTimeout,
)
from aj.model.claim import LONGEST_WAIT_S, ClaimState
from aj.model.state import JobState
from aj.model.workload import Event, Workload
from aj.wire.messages import JobAnswer

if TYPE_CHECKING:
    from aj.client.client import Client

STEP_S = 1.0  # a wait that can be stopped looks this often whether it was


@dataclass(frozen=True)
class Status:
    """A job as it stands. `jobs_ahead` counts the queued jobs before it on its deployment: 0 is the next one.

    It is None for every job that does not wait for a deployment.
    """

    workload: Workload
    events: tuple[Event, ...] = ()
    jobs_ahead: int | None = None
    logs: str | None = None

    @property
    def state(self) -> JobState:
        """Where the job stands."""
        return self.workload.state


@dataclass(frozen=True)
class Ran:
    """A command that was run inside a job. A death by signal N has exit code 128 + N."""

    exit_code: int
    out: bytes
    err: bytes


class Job:
    """A job that was submitted, by its id. Asks the daemon anew for everything but `id`."""

    def __init__(self, client: Client, job_id: str, *, revision: int = 0, stop: threading.Event | None = None) -> None:
        self._client = client
        self.id = job_id
        self.revision = revision
        self._stop = stop

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    def status(self) -> Status:
        """Return where it stands, with its events. Raises NotFound."""
        return _status(self._client.jobs.show(self.id))

    def wait(self, timeout: float | None = None, *, cleaned: bool = False) -> Workload:
        """Wait until it has completed, and return its record; with `cleaned` until its clean-up is done too.

        Raises JobFailed when it ended otherwise: its `details` have `state`, `exit_code` and `reason`. Raises
        WorkloadWaitTimeout after `timeout` seconds; the job goes on then. Raises NotFound, DaemonError.
        """
        job = self._until_over(timeout, cleaned=cleaned)
        if job.state is JobState.COMPLETED:
            return job
        raise _failure(job)

    def _until_over(self, timeout: float | None, *, cleaned: bool) -> Workload:
        limit = None if timeout is None else SYSTEM.monotonic() + timeout
        while True:
            left_s = None if limit is None else max(0.0, limit - SYSTEM.monotonic())
            slice_s = left_s if self._stop is None else min(STEP_S, STEP_S if left_s is None else left_s)
            try:
                *_, last = self._client.jobs.wait(self.id, timeout_s=slice_s, cleaned=cleaned)
                return last.workload
            except TimedOut as error:
                if self._stop is not None and self._stop.is_set():
                    raise
                if limit is not None and SYSTEM.monotonic() >= limit:
                    raise WorkloadWaitTimeout(error.message, details=error.details) from error

    def wait_for_start(self, timeout: float | None = None) -> None:
        """Wait until it has started, or has ended without. Raises WorkloadWaitTimeout, JobFailed, NotFound."""
        limit = None if timeout is None else SYSTEM.monotonic() + timeout
        while True:
            left_s = STEP_S if limit is None else min(STEP_S, max(0.0, limit - SYSTEM.monotonic()))
            with contextlib.suppress(TimedOut):
                for answer in self._client.jobs.wait(self.id, timeout_s=left_s):
                    if answer.workload.started_at is not None:
                        return
            job = self._client.jobs.show(self.id).workload
            if job.started_at is not None or job.state is JobState.COMPLETED:
                return
            if job.state.is_final:
                raise _failure(job)
            if (limit is not None and SYSTEM.monotonic() >= limit) or (self._stop is not None and self._stop.is_set()):
                raise WorkloadWaitTimeout(f"{self.id} is {job.state}, and did not start yet; it goes on")

    def wait_for_claim(self, timeout: float | None = None) -> None:
        """Wait until a replica of its deployment has taken this submission up.

        Raises JobSubmissionExpired when none did before the deadline: it never started, and cannot start any
        more. Raises JobSubmissionTerminated, JobSubmissionChanged when it was submitted again meanwhile, and
        WorkloadWaitTimeout after `timeout` seconds; UserError for a job that was sent to no deployment.
        """
        limit = None if timeout is None else SYSTEM.monotonic() + timeout
        while True:
            left_s = LONGEST_WAIT_S if limit is None else max(0.0, limit - SYSTEM.monotonic())
            hold_s = min(left_s, LONGEST_WAIT_S if self._stop is None else STEP_S)
            seen = self._client.deployments.observe(self.id, self.revision, timeout_s=hold_s)
            if seen.outcome is ClaimState.CLAIMED:
                return
            if seen.outcome is not ClaimState.PENDING:
                raise _unclaimed(self.id, seen.outcome, seen.submission_revision)
            is_over = limit is not None and SYSTEM.monotonic() >= limit
            if is_over or (self._stop is not None and self._stop.is_set()):
                raise WorkloadWaitTimeout(f"{self.id} was not claimed yet; its submission goes on")

    def terminate(self, grace: float | None = None) -> Status:
        """Ask for its end: TERM at once, KILL after `grace` seconds (30). One that has ended is left alone.

        A job of a deployment ends at once; its slot is free when its program has put the work away, or when
        the grace is over. Raises NotFound, OutcomeUnknown.
        """
        return _status(self._client.jobs.terminate(self.id, grace_s=grace))

    def resubmit(self, timeout: float | None = None, *, wait: bool = False, when_clean: bool = False) -> Status:
        """Run it again under its id, as the next revision; `timeout` replaces or clears its deadline.

        With `wait` return once a replica has claimed it. Raises Refused when it has not ended or is not
        cleaned up (with `when_clean` it then runs as soon as it is), NotFound, OutcomeUnknown; with `wait` as
        `wait_for_claim`.
        """
        answer = self._client.jobs.resubmit(self.id, when_clean=when_clean, start_timeout_s=timeout)
        self.revision = answer.workload.submission_revision
        if wait:
            self.wait_for_claim()
            return self.status()
        return _status(answer)

    def logs(
        self,
        *,
        follow: bool = False,
        attempt: int | None = None,
        rank: int | None = None,
        tail: int | None = None,
        since: float | None = None,
    ) -> Iterator[bytes]:
        """Yield what it wrote, in pieces of whole lines; with `follow` as it is written, until it has ended.

        `attempt` chooses a start (the newest), `rank` a process, `tail` the last lines, `since` a moment in
        seconds since the epoch. Raises NotFound, Refused for a job of a deployment, which has no log of its own.
        """
        logs = self._client.logs
        if follow:
            chunks = logs.follow(self.id, attempt=attempt, rank=rank, tail=tail, since=since, stop=self._stop)
        else:
            chunks = logs.read(self.id, attempt=attempt, rank=rank, tail=tail, since=since)
        return (chunk.data for chunk in chunks)

    def exec(
        self, command: str | Sequence[str], *, rank: int = 0, stdin: bytes | None = None, timeout: float | None = None
    ) -> Ran:
        """Run a command inside of it while it runs, and return what that printed.

        One string is a shell line, a sequence the exact words. Raises Refused when the job does not run,
        TimedOut after `timeout` seconds, NotFound.
        """
        words = (command,) if isinstance(command, str) else tuple(command)
        plan = self._client.jobs.exec_plan(self.id, words, rank=rank, stdin=stdin is not None)
        try:
            ran = proc.run(plan.argv, cwd=Path(plan.cwd), env=plan.env, stdin=stdin, timeout_s=timeout)
        except TimeoutError as error:
            raise TimedOut(f"`{shlex.join(words)}` did not end within {timeout or 0:g} s; it was ended") from error
        except OSError as error:
            raise AjError(f"cannot run {plan.argv[0]}: {error.strerror}", code="cannot-run") from error
        return Ran(ran.code if ran.code >= 0 else 128 - ran.code, ran.out, ran.err)

    def delete(self) -> None:
        """Remove an ended job with its logs and files. Raises Refused while it runs, NotFound, OutcomeUnknown."""
        self._client.jobs.delete(self.id)


def _status(answer: JobAnswer) -> Status:
    targeted = answer.workload.targeted is not None
    return Status(answer.workload, answer.events, answer.jobs_ahead if targeted else None, answer.logs)


def _failure(job: Workload) -> JobFailed:
    why = job.message or (f"exit code {job.exit_code}" if job.exit_code is not None else job.reason or "no reason told")
    details: Mapping[str, object] = {
        "id": job.id,
        "state": job.state.value,
        "exit_code": job.exit_code,
        "reason": job.reason,
    }
    hint = f"`aj status {job.id}`" if job.targeted is not None else f"`aj logs {job.id}`"
    return JobFailed(f"job {job.id} {job.state}: {why}", hint=hint, details=details)


def _unclaimed(job_id: str, outcome: ClaimState, revision: int) -> AjError:
    details: Mapping[str, object] = {"id": job_id, "submission_revision": revision}
    if outcome is ClaimState.EXPIRED:
        words = f"no replica claimed {job_id} before its deadline; it never started, and will not"
        return JobSubmissionExpired(words, details=details)
    if outcome is ClaimState.TERMINATED:
        return JobSubmissionTerminated(f"{job_id} was terminated before a replica claimed it", details=details)
    return JobSubmissionChanged(f"{job_id} was submitted again: it is at revision {revision}", details=details)
