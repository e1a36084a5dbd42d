"""aj job stats: how many jobs of a workspace stand where, how long they waited, and what they used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.clock import from_rfc3339
from aj.base.noun import dataclass
from aj.cli import remote
from aj.cli.declare import Option, filled, whole
from aj.model import tally
from aj.model.tally import Sample
from aj.view import cloudjob as view
from aj.wire.azure import JobQuery

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.workload import Workload

DAY_S = 86_400.0


@dataclass(frozen=True)
class Options:
    """Over which jobs."""

    limit: Annotated[int, Option("-n --limit", "over how many at most (10000)", "N", whole(1))] = 10_000
    days: Annotated[int, Option("-d --days", "not older than this many days (7)", "N", whole(1))] = 7
    archived: Annotated[bool, Option("-a --archived", "those that were archived")] = False
    workspace: Annotated[str | None, Option("--ws", "of this workspace", "NAME", filled, values="workspace")] = None


def run(opts: Options, ctx: Context) -> int:
    """Print the totals: of the chosen workspace, or without one of this machine. Raises AuthError, RemoteError."""
    where = remote.chosen(ctx, opts.workspace)
    if where is None:
        return _here(opts, ctx)
    query = JobQuery(since_s=opts.days * DAY_S, archived=opts.archived, limit=opts.limit)
    found = ctx.client.cloud_jobs.stats(where, query)
    if found.stopped:
        ctx.screen.warn(found.stopped, code="truncated")
    ctx.screen.show(view.stats(found.tally, scope=found.workspace, read=found.read, truncated=found.truncated))
    return 0


def _here(opts: Options, ctx: Context) -> int:
    """Count the jobs of this machine: their service is their compute, and nobody else uses it."""
    oldest = ctx.clock.now() - opts.days * DAY_S
    every = ctx.client.jobs.list(all_projects=True, limit=0)
    ctx.tell_warnings(every.warnings)
    young = [job for job in every.jobs if from_rfc3339(job.submitted_at) >= oldest]
    counted = young[: opts.limit]
    found = tally.of([_sample(job, ctx.clock.now()) for job in counted])
    ctx.screen.show(view.stats(found, scope=None, read=len(counted), truncated=len(counted) < len(young)))
    return 0


def _sample(job: Workload, now: float) -> Sample:
    started = None if job.started_at is None else from_rfc3339(job.started_at)
    ended = now if job.completed_at is None else from_rfc3339(job.completed_at)
    gpu_s = None if started is None else job.needs.gpus * max(0.0, ended - started)
    waited = None if started is None else max(0.0, started - from_rfc3339(job.submitted_at))
    return Sample(job.state, None, job.service, None, gpu_s, waited)
