"""aj terminate: ask jobs to end; a submission that still waits is taken out of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import units
from aj.base.errors import OptionError, gravest
from aj.base.noun import dataclass
from aj.cli import managed, remote, several
from aj.cli.declare import Option, Word, duration, filled
from aj.cli.remote import Remote
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Which jobs, and how."""

    jobs: Annotated[
        tuple[str, ...], Word("ID", "the jobs, their tickets or names", filled, many=True, values="open-job")
    ]
    grace_s: Annotated[float | None, Option("--grace", "time between TERM and KILL (30s)", "DURATION", duration)] = None
    wait: Annotated[bool, Option("--wait", "until they have ended")] = False
    timeout_s: Annotated[float | None, Option("--timeout", "give up waiting after this long", "DURATION", duration)] = (
        None
    )
    workspace: Annotated[
        str | None, Option("--ws", "where to look for jobs that are not ours", "NAME", filled, values="workspace")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Ask for the end; one that has ended already is no failure. Raises NotFound, Refused, TimedOut."""
    if opts.timeout_s is not None and not opts.wait:
        raise OptionError("`--timeout` limits `--wait`, which is not there", hint="add `--wait`")
    limit = None if opts.timeout_s is None else ctx.clock.monotonic() + opts.timeout_s
    places: dict[str, Remote] = {}
    outcome = several.each(ctx, opts.jobs, lambda word: _terminate(ctx, word, opts, places))
    if opts.wait:
        outcome = _until_ended(ctx, outcome, places, limit)
    ctx.screen.show(action.done("terminate", outcome.items, outcome.status))
    return outcome.code


def _until_ended(
    ctx: Context, asked: several.Outcome, places: dict[str, Remote], limit: float | None
) -> several.Outcome:
    """Wait for those that were asked to end; what had ended, or could not be asked, stays as it was told."""
    names = [str(item["id"]) for item in asked.items if item["status"] == "ok"]
    waited = several.each(ctx, names, lambda name: _wait(ctx, name, places.get(name), limit))
    ended = {str(item["id"]): item for item in waited.items}
    items = [ended.get(str(item["id"]), item) for item in asked.items]
    return several.Outcome(items, gravest([asked.code, waited.code]))


def _terminate(ctx: Context, word: str, opts: Options, places: dict[str, Remote]) -> Item:
    found = remote.find(ctx, word, opts.workspace)
    if isinstance(found, Remote):
        places[found.id] = found
        return _cancel(ctx, found, opts.grace_s)
    if found.job is None:
        assert found.ticket is not None, "a name that is found names something"
        managed.refuse(found.ticket)
        answer = ctx.client.queue.cancel(found.ticket.ticket)
        return action.item(found.ticket.ticket, status="ok", state=answer.ticket.state.value)
    if found.job.state.is_final:
        return action.item(found.job.id, status="noop", state=found.job.state.value, detail="it has ended already")
    job = ctx.client.jobs.terminate(found.job.id, grace_s=opts.grace_s).workload
    detail = job.message if job.state.is_final else f"asked to end; KILL in {units.duration(job.grace_s or 0)}"
    return action.item(job.id, status="ok", state=job.state.value, detail=detail)


def _cancel(ctx: Context, found: Remote, grace_s: float | None) -> Item:
    """Ask a job of a workspace or a cluster to end; its service decides how long that takes."""
    if grace_s is not None:
        ctx.screen.note(f"{found.id}: its service decides how long that takes; `--grace` is passed over")
    answer = ctx.client.cloud_jobs.cancel(found.workspace, found.name)
    state = answer.job.state.value if answer.job.state else None
    if answer.was_final:
        return action.item(found.id, status="noop", state=state, detail="it has ended already")
    return action.item(found.id, status="ok", state=state, detail="its end is asked for")


def _wait(ctx: Context, name: str, place: Remote | None, limit: float | None) -> Item:
    """Wait for the end of one job; a ticket that was canceled has ended."""
    if name.startswith("q-"):
        return action.item(name, status="ok", state="canceled")
    left_s = None if limit is None else max(0.0, limit - ctx.clock.monotonic())
    if place is not None:
        *_, last = ctx.client.cloud_jobs.wait(place.workspace, place.name, timeout_s=left_s)
        return action.item(name, status="ok", state=last.state.value if last.state else None)
    job = None
    for answer in ctx.client.jobs.wait(name, timeout_s=left_s):
        job = answer.workload
    return action.item(name, status="ok", state=job.state.value if job else None)
