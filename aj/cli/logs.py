"""aj logs: what a job printed, byte for byte: from this machine without a daemon, or from its workspace."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from aj.base import clock, units
from aj.base.errors import AjError, NotFound, OptionError
from aj.base.noun import dataclass
from aj.cli import leaving, named
from aj.cli.declare import Option, Word, choice, filled, whole
from aj.model.log import Source
from aj.store import joblogs, jobs
from aj.view import logs as view
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.log import Chunk
    from aj.view.document import Item


def moment(word: str) -> float:
    """Read `10m` as so long ago (negative seconds), or an RFC 3339 time (seconds since the epoch)."""
    try:
        return -units.parse_duration(word)
    except ValueError:
        pass
    try:
        return clock.from_rfc3339(word)
    except ValueError:
        raise ValueError(f"`{word}` is neither a duration nor a time such as 2026-01-31T12:00:00Z") from None


def sources(word: str) -> tuple[Source, ...]:
    """Read names of sources with commas between them."""
    known = choice(*(source.value for source in Source))
    return tuple(Source(str(known(part))) for part in word.split(","))


@dataclass(frozen=True)
class Options:
    """Which job, and which part of its log."""

    job: Annotated[str, Word("ID", "the job, its ticket or its name", filled, values="job")]
    follow: Annotated[bool, Option("-f --follow", "go on until the job has ended")] = False
    tail: Annotated[int | None, Option("--tail", "only the last lines", "N", whole())] = None
    since: Annotated[float | None, Option("--since", "only what is newer: 10m, or a time", "T", moment)] = None
    attempt: Annotated[int | None, Option("--attempt", "of this start; else the newest", "N", whole(1))] = None
    rank: Annotated[int | None, Option("--rank", "of this process only", "N", whole())] = None
    source: Annotated[
        tuple[Source, ...] | None, Option("--source", "user, runner, platform", "NAMES", sources, values="source")
    ] = None
    label: Annotated[bool, Option("--label", "`[rank 2]` before each line, so that processes can be told apart")] = (
        False
    )
    grep: Annotated[str | None, Option("--grep", "only lines with this text", "TEXT", filled)] = None
    raw: Annotated[bool, Option("--raw", "let every control sequence through to the terminal")] = False
    file: Annotated[str | None, Option("--file", "this log file of a job of a workspace", "NAME", filled)] = None
    every: Annotated[bool, Option("--all", "every log file of a job of a workspace")] = False
    listed: Annotated[bool, Option("--list", "the names and sizes of its log files")] = False
    workspace: Annotated[
        str | None, Option("--ws", "where to look for a job that is not ours", "NAME", filled, values="workspace")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Print the log. Raises NotFound, UserError when several jobs fit."""
    try:
        job_id = named.on_disk(ctx, opts.job)
    except NotFound as error:
        return _elsewhere(opts, ctx, error)
    jobs.with_logs(ctx.layout, job_id)
    _refuse(opts, _OF_FILES, "a job of this machine has no such files")
    need_part(ctx, job_id, opts)
    if opts.follow:
        if ctx.screen.format is Format.JSON:
            ctx.screen.format = Format.JSONL
        with leaving.telling(leaving.goes_on(ctx, (job_id,))):
            follow(ctx, job_id, opts)
        return 0
    chunks = joblogs.read(
        ctx.layout.job(job_id),
        attempt=opts.attempt,
        rank=opts.rank,
        sources=opts.source,
        tail=opts.tail,
        since=_since(opts, ctx),
    )
    if ctx.screen.format is Format.TABLE:
        written = _print(chunks, opts, ctx)
    else:
        lines = [line for chunk in chunks for line in _lines(chunk, opts)]
        ctx.screen.show(view.lines(job_id, lines))
        written = bool(lines)
    if not written:
        _tell_silence(job_id, ctx)
    return 0


_OF_FILES = {"--file": "file", "--all": "every", "--list": "listed"}
_OF_STREAMS = {"--since": "since", "--attempt": "attempt", "--source": "source", "--label": "label"}


def _elsewhere(opts: Options, ctx: Context, missing: NotFound) -> int:
    """Print the log of a job of a workspace, where `missing` says that this machine has none of that name."""
    from aj.cli import cloudlogs, remote
    from aj.cli.cloudlogs import Part
    from aj.client.cloudlogs import Wanted

    found = remote.beyond(ctx, opts.job, opts.workspace, missing)
    _refuse(opts, _OF_STREAMS, "the log files of a workspace do not tell")
    wanted = Wanted(opts.file, opts.rank, opts.every)
    return cloudlogs.run(found, Part(wanted, opts.tail, opts.grep, opts.raw, opts.follow, opts.listed), ctx)


def _refuse(opts: Options, names: Mapping[str, str], why: str) -> None:
    """Refuse options that mean nothing for this job. Raises OptionError."""
    for name, field in names.items():
        if getattr(opts, field) not in (None, False):
            raise OptionError(f"`{name}`: {why}", code="not-for-this-job")


def need_part(ctx: Context, job_id: str, opts: Options) -> None:
    """Refuse a process or a start that the job does not have. Raises NotFound naming those that it has."""
    if opts.rank is None and opts.attempt is None:
        return
    job = jobs.read(ctx.layout, job_id)
    last = max(1, job.attempt, *joblogs.attempts(ctx.layout.job(job_id)))
    if opts.attempt is not None and opts.attempt > last:
        raise _no_part("attempt", opts.attempt, job_id, 1, last)
    most = job.nodes * job.processes_per_node - 1
    if opts.rank is not None and opts.rank > most:
        raise _no_part("rank", opts.rank, job_id, 0, most)


def _no_part(noun: str, number: int, job_id: str, first: int, last: int) -> NotFound:
    there = f"{noun}s {first}-{last}" if last > first else f"{noun} {first}"
    return NotFound(
        f"{job_id} has no {noun} {number}", hint=f"it has {there}", code=f"no-such-{noun}", details={"id": job_id}
    )


def follow(ctx: Context, job_id: str, opts: Options, *, stop: threading.Event | None = None) -> None:
    """Print the log as it is written until the job has ended, or `stop` is set by who waits for that."""
    folder = ctx.layout.job(job_id)
    chunks = joblogs.follow(
        folder,
        ctx.client.logs.ended(job_id) if stop is None else lambda: jobs.has_ended(folder),
        attempt=opts.attempt,
        rank=opts.rank,
        sources=opts.source,
        tail=opts.tail,
        since=_since(opts, ctx),
        clock=ctx.clock,
        stop=stop,
    )
    if ctx.screen.format is Format.TABLE:
        _print(chunks, opts, ctx)
        return
    for chunk in chunks:
        for line in _lines(chunk, opts):
            ctx.screen.item({"type": "log", **line})


def _since(opts: Options, ctx: Context) -> float | None:
    if opts.since is None:
        return None
    return ctx.clock.now() + opts.since if opts.since <= 0 else opts.since


def _print(chunks: Iterator[Chunk], opts: Options, ctx: Context) -> bool:
    """Write the bytes; whether there were any."""
    write = ctx.screen.raw if opts.raw else ctx.screen.verbatim
    written = False
    for chunk in view.whole_lines(chunks) if opts.label else chunks:
        data = chunk.data if opts.grep is None else view.matching(chunk.data, opts.grep)
        if data:
            write(view.labelled(chunk, data) if opts.label else data)
            written = True
    return written


def _lines(chunk: Chunk, opts: Options) -> list[Item]:
    data = chunk.data if opts.grep is None else view.matching(chunk.data, opts.grep)
    return [view.line(chunk, line) for line in data.splitlines()]


def _tell_silence(job_id: str, ctx: Context) -> None:
    """Say why there is nothing."""
    try:
        state = jobs.read(ctx.layout, job_id).state
    except AjError:
        return  # the job was removed meanwhile
    what = "nothing was printed" if state.is_final else "nothing is printed yet"
    ctx.screen.note(f"{what}: {job_id} is {state}")
