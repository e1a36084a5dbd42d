"""aj job why: what keeps a job from running, the first obstacle first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.cli import named, remote
from aj.cli.declare import Word, filled
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which job."""

    job: Annotated[str, Word("ID", "the job, its ticket or its name", filled, values="job")]


def run(opts: Options, ctx: Context) -> int:
    """Print the reasons. Raises NotFound, Refused for a submission that is no job yet."""
    what = named.find(ctx, opts.job)
    remote.refuse(what, "job why", f"`aj status {what.id}`")
    if what.job is None:
        raise Refused(f"{opts.job} is no job yet", hint=f"`aj queue show q-{what.id}`", code="not-a-job")
    ctx.screen.show(view.why(ctx.client.jobs.show(what.job.id)))
    return 0
