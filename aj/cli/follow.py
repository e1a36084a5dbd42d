"""Staying with one job until it ends: its changes of state on stderr, and with `--follow` its log on stdout."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from aj.base.errors import AjError
from aj.cli import logs
from aj.client.client import Client
from aj.model.state import JobState
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.run import Options
    from aj.model.ticket import Ticket
    from aj.model.workload import Workload


class Watch:
    """Follows the states of one job beside whatever else happens, with a client of its own."""

    def __init__(self, ctx: Context, job_id: str, timeout_s: float | None) -> None:
        self.over = threading.Event()
        self.job: Workload | None = None
        self.error: AjError | None = None
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
        shown = 0
        try:
            for answer in client.jobs.wait(self._job_id, timeout_s=self._timeout_s):
                for event in answer.events:
                    if event.number > shown:
                        shown = event.number
                        self._ctx.screen.note(view.event_line(event))
                self.job = answer.workload
        except AjError as error:
            self.error = error
        finally:
            client.close()
            self.over.set()

    def end(self) -> Workload:
        """Wait for the end and return the job. Raises TimedOut, DaemonError."""
        while not self.over.wait(1.0):
            pass  # short waits, so that Ctrl-C is heard
        if self.error is not None:
            raise self.error
        assert self.job is not None, "a wait that ends well has seen the job"
        return self.job


def to_the_end(ticket: Ticket, opts: Options, ctx: Context) -> int:
    """Stay until the job has ended; tell where its files are; return the exit code of the command."""
    watch = Watch(ctx, ticket.id, opts.wait_timeout_s).start()
    if opts.follow:
        logs.follow(ctx, ticket.id, logs.Options(ticket.id, follow=True), stop=watch.over)
    job = watch.end()
    if job.workdir:
        ctx.screen.note(f"files of the job: {job.workdir}")
    if job.state is JobState.COMPLETED:
        return 0
    ctx.screen.trouble(f"job {view.state_line(job)}", f"`aj logs {job.id}`, `aj status {job.id}`")
    return exit_code(job, passed_on=opts.exit_status)


def exit_code(job: Workload, *, passed_on: bool) -> int:
    """Return 0 for a completed job, else 1, or the command's own code where that is wanted and known."""
    if job.state is JobState.COMPLETED:
        return 0
    return job.exit_code if passed_on and job.exit_code else 1
