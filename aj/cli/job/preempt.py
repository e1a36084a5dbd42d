"""aj job preempt: play the loss of a spot job's host, to see the job come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import units
from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.cli import named, remote
from aj.cli.declare import Option, Word, filled
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.bucket import Checkpoints


@dataclass(frozen=True)
class Options:
    """Which job, and whether its host comes back."""

    job: Annotated[str, Word("ID", "the job, its ticket or its name", filled, values="open-job")]
    restartable: Annotated[
        bool, Option("--restartable", "the same host comes back; else it is gone with its files")
    ] = False


def run(opts: Options, ctx: Context) -> int:
    """Take the host away. Raises NotFound, Refused for a job that is not on spot or has no host."""
    found = named.find(ctx, opts.job)
    remote.refuse(found, "job preempt", "a service of Azure takes its hosts away by itself")
    if found.job is None:
        words, hint = named.no_job(opts.job, found.ticket)
        raise Refused(words, hint=hint, code="not-a-job")
    answer = ctx.client.jobs.preempt(found.job.id, restartable=opts.restartable)
    ctx.tell_warnings(answer.warnings)
    job = answer.workload
    what = "its host comes back" if opts.restartable else f"its host is gone; {_what_stays(answer.checkpoints, ctx)}"
    ctx.screen.show(
        action.done("preempt", [action.item(job.id, status="ok", state=job.state.value, detail=what)], "ok")
    )
    return 0


def _what_stays(found: Checkpoints | None, ctx: Context) -> str:
    """Say from where the next start goes on."""
    saved_at = found.health.last_modified_at if found else None
    if saved_at is None:
        return "nothing was saved yet, so it begins anew"
    return f"it goes on from the checkpoint saved {units.duration(round(max(0, ctx.clock.now() - saved_at)))} ago"
