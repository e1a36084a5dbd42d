"""aj terminate: ask jobs to end; a submission that still waits is taken out of the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError, gravest
from aj.cli import named, several
from aj.cli.declare import Option, Word, duration, filled
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Which jobs, and how."""

    jobs: Annotated[tuple[str, ...], Word("ID", "the jobs, their tickets or names", filled, many=True, values="job")]
    grace_s: Annotated[float | None, Option("--grace", "time between TERM and KILL (30s)", "DURATION", duration)] = None
    wait: Annotated[bool, Option("--wait", "until they have ended")] = False
    timeout_s: Annotated[float | None, Option("--timeout", "give up waiting after this long", "DURATION", duration)] = (
        None
    )


def run(opts: Options, ctx: Context) -> int:
    """Ask for the end; one that has ended already is no failure. Raises NotFound, Refused, TimedOut."""
    if opts.timeout_s is not None and not opts.wait:
        raise OptionError("`--timeout` limits `--wait`, which is not there", hint="add `--wait`")
    limit = None if opts.timeout_s is None else ctx.clock.monotonic() + opts.timeout_s
    outcome = several.each(ctx, opts.jobs, lambda word: _terminate(ctx, word, opts.grace_s))
    if opts.wait:
        waited = several.each(ctx, [str(item["id"]) for item in outcome.items], lambda name: _wait(ctx, name, limit))
        outcome = several.Outcome(waited.items, gravest([outcome.code, waited.code]))
    ctx.screen.show(action.done("terminate", outcome.items, outcome.status))
    return outcome.code


def _terminate(ctx: Context, word: str, grace_s: float | None) -> Item:
    found = named.find(ctx, word)
    if found.job is None:
        assert found.ticket is not None, "a name that is found names something"
        answer = ctx.client.queue.cancel(found.ticket.ticket)
        return action.item(found.ticket.ticket, status="ok", state=answer.ticket.state.value)
    if found.job.state.is_final:
        return action.item(found.job.id, status="noop", state=found.job.state.value, detail="it has ended already")
    job = ctx.client.jobs.terminate(found.job.id, grace_s=grace_s).workload
    return action.item(job.id, status="ok", state=job.state.value, detail=job.message)


def _wait(ctx: Context, name: str, limit: float | None) -> Item:
    """Wait for the end of one job; a ticket that was canceled has ended."""
    if name.startswith("q-"):
        return action.item(name, status="ok", state="canceled")
    left_s = None if limit is None else max(0.0, limit - ctx.clock.monotonic())
    job = None
    for answer in ctx.client.jobs.wait(name, timeout_s=left_s):
        job = answer.workload
    return action.item(name, status="ok", state=job.state.value if job else None)
