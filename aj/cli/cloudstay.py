"""Staying with a job of a workspace until it ends: its changes on stderr, and with `--follow` its log on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base import clock
from aj.base.errors import JobFailed
from aj.cli import cloudlogs
from aj.cli.cloudlogs import Part
from aj.client.cloudlogs import Wanted
from aj.model.state import JobState
from aj.view import cloudjob as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.remote import Remote
    from aj.cli.submit import Manner
    from aj.model.cloudjob import CloudJob


def to_the_end(place: Remote, opts: Manner, ctx: Context) -> CloudJob:
    """Stay until the job has ended and return it. Raises TimedOut, AuthError, RemoteError, DaemonError."""
    if opts.follow:
        cloudlogs.run(place, Part(Wanted(), follow=True, timeout_s=opts.wait_timeout_s), ctx)
        return ctx.client.cloud_jobs.show(place.workspace, place.name).job
    last = None
    for job in ctx.client.cloud_jobs.wait(place.workspace, place.name, timeout_s=opts.wait_timeout_s):
        ctx.screen.note(view.state_line(place.id, job, ctx.screen.moment(clock.rfc3339(ctx.clock.now()))))
        last = job
    assert last is not None, "a wait that ends well has seen the job"
    return last


def failure(place: Remote, job: CloudJob) -> JobFailed | None:
    """Return the error that a job is which did not complete."""
    if job.state is JobState.COMPLETED:
        return None
    words = f"job {place.id} is {job.words}" + (f": {job.error}" if job.error else "")
    details = {"id": place.id, "state": job.state.value if job.state else None}
    return JobFailed(words, hint=f"`aj logs {place.id}`, `aj status {place.id}`", details=details)
