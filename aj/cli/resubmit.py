"""aj resubmit: run ended jobs again, each under its own id with the same code and command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.cli import named, remote, several
from aj.cli.declare import Option, Word, duration, filled
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Which jobs, and when."""

    jobs: Annotated[tuple[str, ...], Word("ID", "the jobs, their tickets or names", filled, many=True, values="job")]
    when_clean: Annotated[bool, Option("--when-clean", "as soon as what it left is cleaned up")] = False
    refresh_image: Annotated[
        bool, Option("--refresh-image", "with what the image's tag means now; else with what it meant at submission")
    ] = False
    timeout_s: Annotated[
        float | None, Option("--timeout", "fail unless it has started within this long", "DURATION", duration)
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Run each again. Raises NotFound, Refused for a job that has not ended or is not cleaned up yet."""
    outcome = several.each(ctx, opts.jobs, lambda word: _resubmit(ctx, word, opts))
    ctx.screen.show(action.done("resubmit", outcome.items, outcome.status))
    return outcome.code


def _resubmit(ctx: Context, word: str, opts: Options) -> Item:
    found = named.find(ctx, word)
    remote.refuse(found, "resubmit", "`aj run` with the same words submits it again")
    if found.job is None:
        words, hint = named.no_job(word, found.ticket)
        raise Refused(words, hint=hint, code="not-a-job")
    answer = ctx.client.jobs.resubmit(
        found.job.id,
        when_clean=opts.when_clean,
        start_timeout_s=opts.timeout_s,
        refresh_image=opts.refresh_image,
    )
    ctx.tell_warnings(answer.warnings)
    job = answer.workload
    return action.item(job.id, status="ok", state=job.state.value, detail=f"revision {job.submission_revision}")
