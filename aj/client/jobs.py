"""Jobs that the daemon drives: list, show, wait, end, run again, delete, and find by any of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from aj.base.clock import SYSTEM
from aj.base.errors import NotFound, OutcomeUnknown, TimedOut, UserError
from aj.base.noun import dataclass
from aj.client.line import AnswerLost, Line, Query
from aj.client.queue import named
from aj.model import names
from aj.model.state import JobState
from aj.model.ticket import Ticket
from aj.model.workload import Workload
from aj.wire import paths
from aj.wire.messages import Done, Exec, ExecPlan, JobAnswer, JobList, Preempt, Resubmit, Terminate, TicketList
from aj.wire.paths import Route

HOLD_S = 600.0  # one question waits so long; then it is asked again
LOOK_S = 1.0  # while a job stands in line: what it waits for changes without an event
IN_LINE = (JobState.QUEUED, JobState.RETRYING)
T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """What a name means: a job that the daemon drives, the ticket of its submission, or both."""

    job: Workload | None = None
    ticket: Ticket | None = None

    @property
    def id(self) -> str:
        """The AJ ID, or the id of the job."""
        if self.job is not None:
            return self.job.id
        assert self.ticket is not None, "something was found"
        return self.ticket.id


class Jobs:
    """What a caller can do with jobs."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def list(self, *, all_projects: bool = False, states: Sequence[JobState] = (), limit: int = 200) -> JobList:
        """List jobs, newest first; a limit of 0 means all of them."""
        query: Query = {"all": 1 if all_projects else None, "state": ",".join(states) or None, "limit": limit}
        return self._line.read(JobList, paths.JOBS, query=query)

    def show(self, job_id: str) -> JobAnswer:
        """Return one job with its events. Raises NotFound."""
        return self._line.read(JobAnswer, paths.JOB, named(job_id, "id"))

    def wait(self, job_id: str, *, timeout_s: float | None = None, cleaned: bool = False) -> Iterator[JobAnswer]:
        """Yield a job as it stands and at every change until it is final, or with `cleaned` all gone.

        What a job in line waits for counts as a change too. Goes on across a restart of the daemon.
        Raises NotFound, TimedOut.
        """
        begun, seen, reason, hold_s = SYSTEM.monotonic(), 0, None, HOLD_S
        while True:
            left_s = HOLD_S if timeout_s is None else max(0.0, begun + timeout_s - SYSTEM.monotonic())
            query: Query = {"after": seen, "timeout_s": round(min(left_s, hold_s), 3)}
            answer = self._line.read(JobAnswer, paths.JOB_WAIT, named(job_id, "id"), query=query)
            job = answer.workload
            is_over = job.is_over if cleaned else job.state.is_final
            hold_s = LOOK_S if job.state in IN_LINE else HOLD_S
            if answer.events_total > seen or is_over or job.waiting_for != reason:
                seen, reason = answer.events_total, job.waiting_for
                yield answer
            if is_over:
                return
            if timeout_s is not None and SYSTEM.monotonic() - begun >= timeout_s:
                raise TimedOut(
                    f"{job.id} is {job.state} after {timeout_s:g} s; nothing was stopped",
                    details={"id": job.id, "state": job.state.value},
                )

    def terminate(self, job_id: str, *, grace_s: float | None = None) -> JobAnswer:
        """Ask a job to end. One that has ended is left alone. Raises NotFound, OutcomeUnknown."""
        return self._change(JobAnswer, paths.JOB_TERMINATE, job_id, Terminate(grace_s))

    def resubmit(
        self,
        job_id: str,
        *,
        when_clean: bool = False,
        start_timeout_s: float | None = None,
        refresh_image: bool = False,
    ) -> JobAnswer:
        """Run a final job again under its own id. Raises NotFound, Refused, OutcomeUnknown."""
        asked = Resubmit(when_clean, start_timeout_s, refresh_image)
        return self._change(JobAnswer, paths.JOB_RESUBMIT, job_id, asked)

    def preempt(self, job_id: str, *, restartable: bool = False) -> JobAnswer:
        """Play the loss of a spot job's host. Raises NotFound, Refused, OutcomeUnknown."""
        return self._change(JobAnswer, paths.JOB_PREEMPT, job_id, Preempt(restartable))

    def exec_plan(
        self, job_id: str, argv: Sequence[str], *, rank: int = 0, stdin: bool = False, tty: bool = False
    ) -> ExecPlan:
        """Say how to run a command inside a running job. Raises NotFound, Refused."""
        return self._change(ExecPlan, paths.JOB_EXEC, job_id, Exec(tuple(argv), rank, stdin, tty))

    def delete(self, job_id: str) -> Done:
        """Remove a final job with its logs and files. Raises NotFound, Refused, OutcomeUnknown."""
        return self._change(Done, paths.JOB_DELETE, job_id, None)

    def find(self, word: str) -> Found:
        """Find what a word names: AJ ID, ticket, job id, remote name, a display name or the begin of an id if unique.

        Raises NotFound, UserError listing them when several fit.
        """
        named(word, "id")
        jobs = self.list(all_projects=True, limit=0).jobs
        tickets = self._line.read(TicketList, paths.QUEUE, query={"all": 1, "limit": 0}).tickets
        return choose(word, jobs, tickets)

    def _change(self, kind: type[T], route: Route, job_id: str, body: object) -> T:
        try:
            return self._line.change(kind, route, named(job_id, "id"), body=body)
        except AnswerLost as lost:
            raise OutcomeUnknown(
                f"the answer about {job_id} was lost: {lost}", hint=f"`aj status {job_id}`", details={"id": job_id}
            ) from lost


def choose(word: str, jobs: Sequence[Workload], tickets: Sequence[Ticket]) -> Found:
    """Choose what a word names among these; the begin of an id will do when it is no other's.

    Raises NotFound, UserError listing them when several fit.
    """
    by_id = {job.id: Found(job=job) for job in jobs}
    for ticket in tickets:
        known = by_id.get(ticket.id, Found())
        by_id[ticket.id] = Found(known.job, ticket)
    for spelled in _NAMES:
        fitting = [found for found in by_id.values() if word in spelled(found)]
        if fitting:
            return _only(word, fitting)
    begun = [found for found in by_id.values() if names.is_begin(word, found.id)]
    if begun:
        return _only(word, begun)
    raise NotFound(
        f"no job `{word}`", code="no-such-job", hint="`aj list` and `aj job list` show them", details={"id": word}
    )


def _only(word: str, fitting: Sequence[Found]) -> Found:
    """Return the one that fits. Raises UserError listing them when there are several."""
    if len(fitting) == 1:
        return fitting[0]
    ids = sorted(found.id for found in fitting)
    raise UserError(
        f"`{word}` names {len(ids)} jobs: {', '.join(ids)}",
        code="ambiguous",
        hint="use one of these ids",
        details={"ids": ids},
    )


def _ids(found: Found) -> tuple[str, ...]:
    return (found.id,)


def _tickets(found: Found) -> tuple[str, ...]:
    return (found.ticket.ticket,) if found.ticket else ((found.job.ticket,) if found.job else ())


def _remote_names(found: Found) -> tuple[str, ...]:
    result = found.ticket.result if found.ticket else None
    return (result.azure_name,) if result and result.azure_name else ()


def _names(found: Found) -> tuple[str, ...]:
    return tuple(noun.name for noun in (found.job, found.ticket) if noun is not None)


_NAMES = (_ids, _tickets, _remote_names, _names)
