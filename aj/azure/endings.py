"""How a job ends by our hand: cancelled, or deleted, until it is known whether that worked.

Each is sent once. When the answer is lost, the job itself is asked; only when that does not tell either,
the outcome is unknown. Asking again is always allowed.
"""

from __future__ import annotations

from aj.azure import jobs
from aj.azure.arm import Session, Workspace
from aj.azure.jobs import Job
from aj.base import units
from aj.base.clock import Clock, rfc3339
from aj.base.errors import NotFound, OutcomeUnknown, Refused, RemoteError
from aj.base.noun import dataclass
from aj.net import document, pages, refusal
from aj.net.http import Request, Response

PAUSE_S = 2.0  # between two looks, when the service asks for no other
LIMIT_S = 120.0  # a deletion takes seconds; after minutes nobody knows
MONITORS = ("azure-asyncoperation", "operation-location", "location")  # the first that is there is the best
FAILED = frozenset({"failed", "canceled", "cancelled"})


@dataclass(frozen=True)
class Cancelled:
    """What cancelling found. `was_final` when the job had ended already and nothing was sent."""

    job: Job
    was_final: bool = False


def cancel(session: Session, workspace: Workspace, name: str) -> Cancelled:
    """Ask a job to end, unless it has. Raises NotFound, Refused, and OutcomeUnknown when nobody can tell."""
    before = jobs.get(session, workspace, name)
    if before.is_final:
        return Cancelled(before, was_final=True)
    try:
        jobs.cancel(session, workspace, name)
    except Refused as error:
        after = jobs.get(session, workspace, name)
        if refusal.status_of(error) == 409 and after.is_final:
            return Cancelled(after)  # it ended between our look and our word
        raise
    except OutcomeUnknown:
        after = jobs.get(session, workspace, name)
        if after.is_final or after.status == "CancelRequested":
            return Cancelled(after)
        raise
    return Cancelled(before)


def wait(session: Session, workspace: Workspace, name: str, clock: Clock, *, limit_s: float | None = None) -> Job:
    """Look at a job until it has ended; without a limit as long as that takes. Raises as jobs.get.

    Returns it as it stands when the limit is over.
    """
    until = None if limit_s is None else clock.monotonic() + limit_s
    while True:
        job = jobs.get(session, workspace, name)
        if job.is_final or (until is not None and clock.monotonic() >= until):
            return job
        clock.sleep(PAUSE_S)


def delete(session: Session, workspace: Workspace, name: str, clock: Clock) -> None:
    """Delete a job that has ended, and wait until it is gone; one that is gone already is fine.

    Raises Refused when it has not ended, RemoteError when the deletion failed, OutcomeUnknown when nobody can tell.
    """
    job = jobs.find(session, workspace, name)
    if job is None:
        return
    if not job.is_final:
        raise Refused(f"job {name} is {job.status}", code="not-final", hint=f"`aj job cancel {name}` first")
    _Deletion(session, workspace, name, clock).carry_out()


@dataclass(frozen=True)
class _Deletion:
    session: Session
    workspace: Workspace
    name: str
    clock: Clock

    def carry_out(self) -> None:
        try:
            answer = jobs.delete(self.session, self.workspace, self.name)
        except OutcomeUnknown:
            if jobs.find(self.session, self.workspace, self.name) is None:
                return
            raise
        if answer.status == 202:
            self._watch(answer)

    def _watch(self, answer: Response) -> None:
        """Follow a deletion that goes on, by what its answer names, else by the job itself."""
        until = self.clock.monotonic() + LIMIT_S
        monitor = self._monitor(answer)
        while True:
            asked_s = refusal.retry_after_s(answer.headers, self.clock.now()) or PAUSE_S
            self.clock.sleep(min(asked_s, max(PAUSE_S, until - self.clock.monotonic())))
            if monitor is not None:
                found = self._look(monitor)
                if found is None:
                    monitor = None  # the operation is forgotten: the job itself decides
                elif self._is_over(found, monitor):
                    return
                else:
                    answer = found
            if monitor is None and jobs.find(self.session, self.workspace, self.name) is None:
                return
            if self.clock.monotonic() >= until:
                raise self._unknown()

    def _monitor(self, answer: Response) -> Request | None:
        link = next((link for header in MONITORS if (link := answer.header(header))), None)
        return pages.follow(jobs.deletion(self.session, self.workspace, self.name), link) if link else None

    def _look(self, monitor: Request) -> Response | None:
        try:
            return self.session.manager.ask(monitor)
        except NotFound:
            return None

    def _is_over(self, found: Response, monitor: Request) -> bool:
        """Tell whether the operation has ended. Raises RemoteError when it ended badly."""
        if found.status == 202:
            return False
        if found.status == 204 or not found.body.strip():
            return True
        operation = document.of(found, monitor)
        status = (operation.text("status") or "").lower()
        if status in FAILED:
            code = operation.text("error", "code") or status
            words = operation.text("error", "message") or "no reason given"
            raise RemoteError(f"could not delete job {self.name}: {code}: {words}", details={"remote_code": code})
        return status in ("", "succeeded")

    def _unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"whether job {self.name} is deleted is not known: it was still there after {units.duration(LIMIT_S)}",
            hint=f"`aj job delete {self.name}` again a little later",
            details={"at": rfc3339(self.clock.now())},
        )
