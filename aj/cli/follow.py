"""Staying with one job until it ends: its changes of state on stderr, and with `--follow` its log on stdout."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from aj.base.errors import AjError, JobFailed
from aj.cli import logs
from aj.client.client import Client
from aj.model.state import JobState
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.submit import Manner
    from aj.model.ticket import Ticket
    from aj.model.workload import Event, Workload


class Watch:
    """Follows the states of one job beside whatever else happens, with a client of its own."""

    def __init__(self, ctx: Context, job_id: str, timeout_s: float | None) -> None:
        self.over = threading.Event()
        self.job: Workload | None = None
        self.error: AjError | None = None
        self._last: Event | None = None
        self._ctx = ctx
        self._job_id = job_id
        self._timeout_s = timeout_s
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> Watch:
        """Begin."""
        self._thread.start()
        return self

    def _run(self) -> None:
        client = Client(self._ctx.settings, self._ctx.project)
        shown = view.Shown()
        try:
            for answer in client.jobs.wait(self._job_id, timeout_s=self._timeout_s):
                shown, events = view.news(answer, shown, self._ctx.clock.now())
                for event in events:
                    self._tell(event)
                self.job = answer.workload
        except AjError as error:
            self.error = error
        finally:
            client.close()
            self.over.set()

    def _tell(self, event: Event) -> None:
        """Say a change of state; the end is kept until the last bytes of the log are written."""
        if event.state.is_final:
            self._last = event
        else:
            self._ctx.screen.note(view.event_line(event, self._ctx.screen.moment))

    def end(self) -> Workload:
        """Wait for the end, say it, and return the job. Raises TimedOut, DaemonError."""
        while not self.over.wait(1.0):
            pass  # short waits, so that Ctrl-C is heard
        if self._last is not None:
            self._ctx.screen.note(view.event_line(self._last, self._ctx.screen.moment))
        if self.error is not None:
            raise self.error
        assert self.job is not None, "a wait that ends well has seen the job"
        return self.job


def to_the_end(ticket: Ticket, opts: Manner, watch: Watch, ctx: Context) -> Workload:
    """Stay until the job has ended and return it; tell where its files are. Raises TimedOut, DaemonError."""
    watch.start()
    if opts.follow:
        logs.follow(ctx, ticket.id, logs.Options(ticket.id, follow=True, label=opts.label), stop=watch.over)
    job = watch.end()
    if job.workdir:
        ctx.screen.note(f"files of the job: {view.files_text(job)}")
    return job


def failure(job: Workload) -> JobFailed:
    """Return the error that a job is which did not complete."""
    return JobFailed(
        f"job {view.state_line(job)}",
        hint=f"`aj logs {job.id}`, `aj status {job.id}`",
        details={"id": job.id, "state": job.state.value},
    )


def exit_code(job: Workload, *, passed_on: bool) -> int:
    """Return 0 for a completed job, else 1, or the command's own code where that is wanted and known."""
    if job.state is JobState.COMPLETED:
        return 0
    return job.exit_code if passed_on and job.exit_code else 1
