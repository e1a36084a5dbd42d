"""A small engine behind a real daemon: it keeps tickets and jobs, and does what the first word of a command says.

    ok            is submitted at once
    until FILE    is submitted once the file is there (the ticket runs meanwhile)
    pack FILE     is accepted once the file is there
    taken         its id is taken, unless it begins with `f`
    boom          an error that nobody foresaw
    dies-before   the daemon is killed before it accepts
    dies-after    the daemon is killed after it has accepted and before it answers

A file `hang` in its folder holds up its end. As a program it is the daemon itself, in the place of the product's.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from aj.base.clock import Clock, rfc3339
from aj.base.errors import NotFound, OutcomeUnknown, Refused
from aj.base.paths import Folders, Project
from aj.base.settings import Settings
from aj.daemon import serve
from aj.engine.hub import Hub
from aj.model.code import CodePlan
from aj.model.job import JobSpec, Shape
from aj.model.state import JobState
from aj.model.ticket import Outcome, Submitted, Ticket, TicketState
from aj.model.workload import Event, Needs, Workload
from aj.wire import codec
from aj.wire.messages import (
    Busy,
    Done,
    Exec,
    ExecPlan,
    JobAnswer,
    JobList,
    ProjectQueue,
    Submission,
    TicketAnswer,
    TicketList,
)

LOOK_S = 0.01


def spec(aj_id: str, *argv: str) -> JobSpec:
    """A submission that the small engine understands."""
    return JobSpec(
        id=aj_id,
        name=f"name_{aj_id}",
        service="local",
        template="t",
        experiment=None,
        directory="/",
        project=None,
        shape=Shape(1, 0, 1, 0),
        argv=argv or ("ok",),
        code=CodePlan("/"),
    )


def workload(job_id: str, state: JobState, *, events: int = 1, project_key: str = "_none") -> Workload:
    """A job as the engine would tell it."""
    at = rfc3339(0)
    return Workload(
        id=job_id,
        name=f"name_{job_id}",
        service="local",
        template="t",
        project=None,
        project_key=project_key,
        ticket=f"q-{job_id}",
        state=state,
        created_at=at,
        submitted_at=at,
        needs=Needs(),
        cleaned_at=at if state.is_final else None,
        last_event=Event(events, state, at),
    )


class SmallJobs:
    """Jobs that a test moves itself."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.known: dict[str, Workload] = {}

    def put(self, job: Workload) -> None:
        with self.changed:
            self.known[job.id] = job
            self.changed.notify_all()

    def move(self, job_id: str, state: JobState) -> None:
        old = self.known[job_id]
        number = (old.last_event.number if old.last_event else 0) + 1
        self.put(workload(job_id, state, events=number))

    def _get(self, job_id: str) -> Workload:
        if job_id not in self.known:
            raise NotFound(f"no job {job_id}", code="no-such-job")
        return self.known[job_id]

    def _answer(self, job: Workload) -> JobAnswer:
        event = job.last_event
        assert event is not None
        return JobAnswer(job, (event,), event.number)

    def list(self, project_key: str | None, states: Sequence[JobState], limit: int) -> JobList:
        fitting = [
            job
            for job in reversed(self.known.values())
            if project_key in (None, job.project_key) and (not states or job.state in states)
        ]
        return JobList(tuple(fitting[:limit]), truncated=len(fitting) > limit)

    def show(self, job_id: str) -> JobAnswer:
        return self._answer(self._get(job_id))

    def wait(self, job_id: str, after_event: int, timeout_s: float) -> JobAnswer:
        def has_news() -> bool:
            job = self._get(job_id)
            assert job.last_event is not None
            return job.last_event.number > after_event or job.is_over

        with self.changed:
            self.changed.wait_for(has_news, timeout_s)
        return self.show(job_id)

    def terminate(self, job_id: str, grace_s: float | None) -> JobAnswer:
        if not self._get(job_id).state.is_final:
            self.move(job_id, JobState.TERMINATED)
        return self.show(job_id)

    def resubmit(
        self, job_id: str, when_clean: bool, start_timeout_s: float | None, refresh_image: bool = False
    ) -> JobAnswer:
        if not self._get(job_id).state.is_final:
            raise Refused(f"{job_id} is not over", code="not-final")
        self.move(job_id, JobState.QUEUED)
        return self.show(job_id)

    def preempt(self, job_id: str, can_restart: bool) -> JobAnswer:
        if self._get(job_id).state.is_final:
            raise Refused(f"{job_id} has no host", code="no-host")
        self.move(job_id, JobState.RECOVERING)
        return self.show(job_id)

    def exec_plan(self, job_id: str, asked: Exec) -> ExecPlan:
        self._get(job_id)
        return ExecPlan(asked.argv, {"RANK": str(asked.rank)}, "/")

    def delete(self, job_id: str) -> Done:
        del self.known[self._get(job_id).id]
        return Done("ok", job_id)


class SmallEngine:
    """Tickets in memory, and on disk so that a killed daemon's are known to the next one."""

    def __init__(self, settings: Settings, folders: Folders, clock: Clock) -> None:
        self.hub = Hub()
        self.jobs = SmallJobs()
        self._clock = clock
        self._folder = folders.state / "small"
        self._changed = threading.Condition()
        self._tickets: dict[str, Ticket] = {}
        self._bodies: dict[str, object] = {}
        self._projects: dict[str, str] = {}
        self._touched = clock.monotonic()
        self.submits = 0

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self._folder.glob("*.json")):
            ticket = codec.load(Ticket, json.loads(path.read_text()))
            self._tickets[ticket.ticket] = ticket

    def jobs_at(self, workspace: str) -> object:
        return self.cloud  # type: ignore[attr-defined]

    def begin_drain(self) -> None: ...

    def drain(self, timeout_s: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy().tickets_running, timeout_s)

    def stop(self) -> None:
        self._until(lambda: not (self._folder / "hang").exists())
        self.hub.close()

    def _count(self, state: TicketState) -> int:
        return sum(ticket.state is state for ticket in self._tickets.values())

    def busy(self) -> Busy:
        return Busy(tickets_running=self._count(TicketState.RUNNING), tickets_queued=self._count(TicketState.QUEUED))

    def projects(self) -> tuple[ProjectQueue, ...]:
        return tuple(ProjectQueue(key, path, 1) for key, path in self._projects.items())

    def last_activity(self) -> float:
        return self._touched

    def _save(self, ticket: Ticket) -> Ticket:
        with self._changed:
            self._tickets[ticket.ticket] = ticket
            (self._folder / f"{ticket.ticket}.json").write_text(json.dumps(codec.dump(ticket)))
            self._touched = self._clock.monotonic()
            self._changed.notify_all()
        self.hub.publish("ticket", ticket.project, {"ticket": ticket.ticket, "state": ticket.state.value})
        return ticket

    def submit(self, project: Project | None, submission: Submission) -> TicketAnswer:
        self.submits += 1
        known = self._tickets.get(f"q-{submission.key}")
        if known is not None:
            if self._bodies.get(submission.key) != submission:
                raise Refused("used for another submission", code="key-reused")
            return TicketAnswer(known)
        word, *rest = submission.spec.argv
        if word == "boom":
            raise RuntimeError("boom, with token=geheim")
        if word == "taken" and not submission.key.startswith("f"):
            raise Refused("taken", code="id-taken")
        if word == "pack":
            self._until(Path(rest[0]).exists)
        if word == "dies-before":
            os.kill(os.getpid(), signal.SIGKILL)
        if project is not None:
            self._projects[project.key] = str(project.directory)
        ticket = self._save(self._new(project, submission))
        self._bodies[submission.key] = submission
        if word == "dies-after":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "until":
            threading.Thread(target=self._finish_when, args=(ticket, Path(rest[0])), daemon=True).start()
        elif word not in ("queued", "dies-after"):
            self._finish(ticket)
        return TicketAnswer(ticket, ("a warning",))

    def _new(self, project: Project | None, submission: Submission) -> Ticket:
        queued = submission.spec.argv[0] == "queued"
        return Ticket(
            ticket=f"q-{submission.key}",
            id=submission.key,
            mode=submission.mode,
            state=TicketState.QUEUED if queued else TicketState.RUNNING,
            name=submission.spec.name,
            service="local",
            template="t",
            sequence=len(self._tickets) + 1,
            created_at=rfc3339(self._clock.now()),
            project=project.key if project else "_none",
        )

    def _until(self, is_so: Callable[[], bool]) -> None:
        waiting = threading.Event()
        while not is_so():
            waiting.wait(LOOK_S)

    def _finish_when(self, ticket: Ticket, path: Path) -> None:
        self._until(path.exists)
        self._finish(ticket)

    def _finish(self, ticket: Ticket) -> None:
        result = Submitted(f"remote-{ticket.id}", f"local://jobs/{ticket.id}")
        self._save(replace(ticket, state=TicketState.COMPLETED, outcome=Outcome.SUBMITTED, result=result))

    def _get(self, ticket: str) -> Ticket:
        if ticket not in self._tickets:
            raise NotFound(f"no such ticket {ticket}", code="no-such-ticket")
        return self._tickets[ticket]

    def submission(self, project: Project | None, key: str, wait_s: float, after: int | None = None) -> TicketAnswer:
        return self.queue_wait(project, f"q-{key}", wait_s)

    def queue_list(self, project: Project | None, all_projects: bool, states: Sequence[str], limit: int) -> TicketList:
        key = project.key if project else "_none"
        fitting = [
            ticket
            for ticket in self._tickets.values()
            if (all_projects or ticket.project == key) and (not states or ticket.state in states)
        ]
        return TicketList(tuple(fitting[:limit] if limit else fitting), self.projects())

    def queue_show(self, project: Project | None, ticket: str) -> TicketAnswer:
        return TicketAnswer(self._get(ticket))

    def queue_wait(self, project: Project | None, ticket: str, timeout_s: float) -> TicketAnswer:
        with self._changed:
            self._changed.wait_for(lambda: self._get(ticket).state.is_final, timeout_s)
        return TicketAnswer(self._get(ticket))

    def queue_cancel(self, project: Project | None, ticket: str) -> TicketAnswer:
        found = self._get(ticket)
        if found.state is not TicketState.QUEUED:
            raise Refused(f"{ticket} is {found.state}", code="not-queued", hint=f"`aj job cancel {found.id}`")
        return TicketAnswer(self._save(replace(found, state=TicketState.CANCELED, outcome=Outcome.CANCELED)))

    def queue_retry(self, project: Project | None, ticket: str, force: bool) -> TicketAnswer:
        if not force:
            raise OutcomeUnknown(f"{ticket} may exist", hint=f"`aj queue reconcile {ticket}`")
        return TicketAnswer(self._get(ticket), ("may exist twice",))

    def queue_reconcile(self, project: Project | None, ticket: str) -> TicketAnswer:
        return TicketAnswer(self._get(ticket))

    def queue_resume(self, project: Project | None) -> Done:
        return Done("ok", str(project.directory) if project else "all")


if __name__ == "__main__":
    sys.exit(serve.main(sys.argv[1:], SmallEngine))
