"""aj job why: what keeps a job from running, the first obstacle first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import NotFound, Refused
from aj.base.noun import dataclass
from aj.cli import named, remote
from aj.cli.declare import Word, filled
from aj.cli.remote import Remote
from aj.view import cloudjob
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which job."""

    job: Annotated[str, Word("ID", "the job, its ticket or its name", filled, values="job")]


def run(opts: Options, ctx: Context) -> int:
    """Print the reasons. Raises NotFound, Refused for a submission that is no job yet."""
    try:
        what = named.find(ctx, opts.job)
    except NotFound as missing:
        elsewhere = remote.recorded(ctx, opts.job, missing)
        if elsewhere is None or not elsewhere.is_on_cluster:
            raise
        return _on_cluster(elsewhere, ctx)
    elsewhere = remote.of_ticket(what.ticket) if what.job is None and what.ticket else None
    if elsewhere is not None and elsewhere.is_on_cluster:
        return _on_cluster(elsewhere, ctx)
    remote.refuse(what, "job why", f"`aj status {what.id}`")
    if what.job is None:
        words, hint = named.no_job(opts.job, what.ticket)
        raise Refused(words, hint=hint, code="not-a-job")
    ctx.screen.show(view.why(ctx.client.jobs.show(what.job.id)))
    return 0


def _on_cluster(job: Remote, ctx: Context) -> int:
    answer = ctx.client.cloud_jobs.show(job.workspace, job.name, why=True)
    ctx.tell_warnings(answer.warnings, code="cluster")
    state = answer.job.state.value if answer.job.state else cloudjob.UNKNOWN
    ctx.screen.show(view.obstacles(job.id, state, answer.reasons))
    return 0
