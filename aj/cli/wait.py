"""aj wait: one line per change of state, until every job has ended, or runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from typing import Annotated

from aj.base import clock, text
from aj.base.errors import AjError, JobFailed, OptionError, TimedOut, gravest
from aj.base.noun import dataclass
from aj.cli import follow, leaving, managed, remote, several
from aj.cli.context import Context
from aj.cli.declare import Option, Word, duration, filled
from aj.cli.remote import Remote
from aj.client.client import Client
from aj.model.cloudjob import CloudJob
from aj.model.state import JobState
from aj.model.ticket import Ticket, TicketState
from aj.model.workload import Event, Workload
from aj.view import cloudjob
from aj.view import job as view
from aj.view.screen import Format
from aj.wire import errors

NOT_WAITED = "not waited for"
NAMED = 5  # ids in a line that one can read
HEARTBEAT_S = 1800.0  # a sign of life for whoever watches the output of a job that stays as it is


@dataclass(frozen=True)
class Options:
    """Which jobs, and how long."""

    jobs: Annotated[tuple[str, ...], Word("ID", "the jobs, their tickets or names", filled, many=True, values="job")]
    timeout_s: Annotated[
        float | None, Option("--timeout", "give up after this long; 0 looks once", "DURATION", duration)
    ] = None
    cleaned: Annotated[bool, Option("--cleaned", "until all that they left is cleaned up, too")] = False
    running: Annotated[bool, Option("--running", "only until they run, as `exec` wants it; 1 if one ends badly")] = (
        False
    )
    exit_status: Annotated[bool, Option("--exit-status", "end with the job's own exit code")] = False
    workspace: Annotated[
        str | None, Option("--ws", "where to look for jobs that are not ours", "NAME", filled, values="workspace")
    ] = None


@dataclass(frozen=True)
class News:
    """What one watcher has to tell: an event, the end of its job, or an error that ended the watching.

    Of a job of a workspace it tells where that stands, and the id by which it is known.
    """

    word: str
    event: Event | None = None
    job: Workload | None = None
    cloud: CloudJob | None = None
    cloud_id: str = ""
    error: AjError | None = None

    @property
    def id(self) -> str:
        return self.job.id if self.job else self.cloud_id or self.word

    @property
    def state(self) -> str:
        """Where it stands, in the word of a summary."""
        if self.error is not None:
            return NOT_WAITED
        state = self.job.state if self.job else self.cloud.state if self.cloud else None
        return state.value if state else "unknown"


def run(opts: Options, ctx: Context) -> int:
    """Wait for all: 0 when all completed, 1 when any ended otherwise. Raises NotFound, TimedOut, OptionError."""
    if opts.running and opts.cleaned:
        raise OptionError("`--running` and `--cleaned` do not go together", hint="what is cleaned up does not run")
    news: queue.Queue[News] = queue.Queue()
    for word in dict.fromkeys(opts.jobs):
        threading.Thread(target=_watch, args=(opts, ctx, word, news), name=f"wait {word}", daemon=True).start()
    over: dict[str, int] = {}
    ends: list[News] = []
    with leaving.telling(lambda: _tell_left(opts, over, ctx)):
        while len(over) < len(set(opts.jobs)):
            try:
                heard = news.get(timeout=HEARTBEAT_S)
            except queue.Empty:
                _beat(ctx)
                continue
            code = _tell(heard, opts, ctx)
            if code is not None:
                over[heard.word] = code
                ends.append(heard)
    _tell_ends(ends, ctx)
    return gravest(list(over.values()))


def _tell_ends(ends: Sequence[News], ctx: Context) -> None:
    """Sum up how several ended, naming those that did not complete, and say where to look."""
    by_state: dict[str, list[str]] = {}
    for news in sorted(ends, key=lambda news: (news.state != JobState.COMPLETED, news.state == NOT_WAITED)):
        by_state.setdefault(news.state, []).append(news.id)
    if len(ends) > 1:
        parts = [
            f"{len(ids)} {state}" + ("" if state == JobState.COMPLETED else f": {text.some(ids, NAMED)}")
            for state, ids in by_state.items()
        ]
        ctx.screen.note("; ".join(parts))
    fine = (JobState.COMPLETED, JobState.RUNNING, JobState.TERMINATED, NOT_WAITED)
    went_wrong = [news.id for news in ends if news.state not in fine]
    if went_wrong:
        ctx.screen.note(f"hint: `aj logs {went_wrong[0]}`")


def _tell_left(opts: Options, over: Mapping[str, int], ctx: Context) -> None:
    """Say that what was waited for goes on."""
    left = tuple(dict.fromkeys(word for word in opts.jobs if word not in over))
    if left:
        leaving.goes_on(ctx, left)()


def _watch(opts: Options, ctx: Context, word: str, news: queue.Queue[News]) -> None:
    """Follow one job with a client of its own, which no other thread uses."""
    client = Client(ctx.settings, ctx.project)
    own = Context(ctx.settings, ctx.streams, ctx.clock, ctx.found, ctx.command)
    own.client = client
    try:
        _follow(opts, own, word, news)
    except TimedOut as error:
        news.put(News(word, error=_as_asked(error, opts)))
    except AjError as error:
        news.put(News(word, error=error))
    finally:
        client.close()


def _as_asked(error: TimedOut, opts: Options) -> TimedOut:
    """Return the error with the time that was asked for, of which some was gone before the last wait began."""
    name, state = error.details.get("ticket") or error.details.get("id"), error.details.get("state")
    if name and state and opts.timeout_s is not None:
        error.message = f"{name} is {state} after {opts.timeout_s:g} s; nothing was stopped"
    return error


def _follow(opts: Options, ctx: Context, word: str, news: queue.Queue[News]) -> None:
    limit = None if opts.timeout_s is None else ctx.clock.monotonic() + opts.timeout_s
    found = remote.find(ctx, word, opts.workspace)
    if not isinstance(found, Remote) and found.job is None and found.ticket is not None:
        submitted = _until_submitted(ctx, found.ticket.ticket, limit)
        managed.refuse(submitted)
        found = remote.of_ticket(submitted) or found
    if isinstance(found, Remote):
        for there in ctx.client.cloud_jobs.wait(found.workspace, found.name, timeout_s=_left(limit, ctx)):
            news.put(News(word, cloud=there, cloud_id=found.id))
            if opts.running and there.state is JobState.RUNNING:
                return
        return
    job_id = found.id
    shown, last = view.Shown(), None
    for answer in ctx.client.jobs.wait(job_id, timeout_s=_left(limit, ctx), cleaned=opts.cleaned):
        shown, events = view.news(answer, shown, ctx.clock.now())
        for event in events:
            news.put(News(word, event=event, job=answer.workload))
        last = answer.workload
        if opts.running and last.state is JobState.RUNNING:
            break
    assert last is not None, "a wait that ends well has seen the job"
    news.put(News(word, job=last))


def _until_submitted(ctx: Context, ticket: str, limit: float | None) -> Ticket:
    """Wait for the submission itself, and return its ticket. Raises its error when it failed."""
    ended = ctx.client.queue.wait(ticket, timeout_s=_left(limit, ctx)).ticket
    if ended.state is TicketState.COMPLETED:
        return ended
    if ended.error is not None:
        raise errors.error(ended.error)
    raise JobFailed(f"{ticket} was {ended.state}", hint=f"`aj queue show {ticket}`")


def _left(limit: float | None, ctx: Context) -> float | None:
    return None if limit is None else max(0.0, limit - ctx.clock.monotonic())


def _tell(news: News, opts: Options, ctx: Context) -> int | None:
    """Print one piece of news; the exit code of a job that is over."""
    screen = ctx.screen
    if news.error is not None:
        return _tell_error(news, opts, ctx, news.error)
    if news.cloud is not None:
        code = tell_cloud(ctx, news.cloud_id, news.cloud)
        return 0 if opts.running and news.cloud.state is JobState.RUNNING else code
    assert news.job is not None, "news without an error is about a job"
    if news.event is not None:
        if screen.format is Format.TABLE:
            screen.line(f"{news.job.id}  {view.event_line(news.event, screen.moment)}")
        else:
            screen.item(view.change_item(news.job.id, news.event))
        return None
    if screen.format is not Format.TABLE:
        screen.item(view.result_item(news.job, clock.rfc3339(ctx.clock.now())))
    elif news.job.workdir and news.job.state is JobState.COMPLETED:
        screen.note(f"files of {news.job.id}: {view.files_text(news.job)}")
    if opts.running and news.job.state is JobState.RUNNING:
        return 0
    return follow.exit_code(news.job, passed_on=opts.exit_status)


def tell_cloud(ctx: Context, job_id: str, job: CloudJob) -> int | None:
    """Print where a job of a workspace stands; the exit code once it has ended. Azure tells no code of a job's own."""
    screen, at = ctx.screen, clock.rfc3339(ctx.clock.now())
    if screen.format is Format.TABLE:
        screen.line(cloudjob.state_line(job_id, job, screen.moment(at)))
    else:
        screen.item(cloudjob.change_item(job_id, job, at))
        if job.is_final:
            screen.item(cloudjob.result_item(job_id, job, at))
    if not job.is_final:
        return None
    return 0 if job.state is JobState.COMPLETED else 1


def _tell_error(news: News, opts: Options, ctx: Context, error: AjError) -> int:
    """Raise the error of a single job; with several tell it and go on with the others."""
    if len(opts.jobs) == 1:
        raise error
    item = several.failed(ctx, news.word, error)
    if ctx.screen.format is not Format.TABLE:
        ctx.screen.item({**item, "type": "result"})
    return error.exit_code


def _beat(ctx: Context) -> None:
    if ctx.screen.format is Format.TABLE:
        ctx.screen.note("still waiting")
    else:
        ctx.screen.item({"type": "heartbeat", "at": clock.rfc3339(ctx.clock.now())})
