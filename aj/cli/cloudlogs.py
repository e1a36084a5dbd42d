"""The log of a job of a workspace: one of its files, or all, to its end or on until the job has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.cli import leaving
from aj.client.cloudlogs import CloudLogs, Piece, Wanted, rank_of
from aj.view import logs as view
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.remote import Remote
    from aj.view.document import Item
    from aj.wire.azure import LogFiles


@dataclass(frozen=True)
class Part:
    """Which part of the log, and how it is shown."""

    wanted: Wanted
    tail: int | None = None
    grep: str | None = None
    raw: bool = False
    follow: bool = False
    listed: bool = False
    timeout_s: float | None = None


def run(job: Remote, part: Part, ctx: Context) -> int:
    """Print the log, or the list of its files. Raises NotFound without such a file, AuthError, RemoteError."""
    logs = CloudLogs(ctx.client.cloud_jobs, job.workspace, job.name, ctx.clock)
    if part.listed:
        ctx.screen.show(view.files(job.id, logs.files(sizes=True).files))
        return 0
    if part.follow:
        if ctx.screen.format is Format.JSON:
            ctx.screen.format = Format.JSONL
        with leaving.telling(leaving.goes_on(ctx, (job.id,))):
            _write(logs.follow(part.wanted, tail=part.tail, timeout_s=part.timeout_s), part, ctx)
        return 0
    found = logs.files()
    chosen = part.wanted.of(found)
    _tell_others(found, chosen, part, ctx)
    pieces = (piece for file in chosen for piece in logs.read(file, tail=part.tail))
    if not _write(pieces, part, ctx, job_id=job.id):
        what = "nothing was printed" if found.job.is_final else "nothing is printed yet"
        ctx.screen.note(f"{what}: {job.id} is {found.job.words}")
    return 0


def _tell_others(found: LogFiles, chosen: tuple[str, ...], part: Part, ctx: Context) -> None:
    """Say which file this is when there are others that were not asked for."""
    is_open = part.wanted == Wanted()
    if chosen and is_open and len(found.files) > 1:
        ctx.screen.note(f"{chosen[0]}: 1 of {len(found.files)} files; `--list` names them, `--all` prints them")


def _write(pieces: Iterable[Piece], part: Part, ctx: Context, *, job_id: str | None = None) -> bool:
    """Write what comes; whether anything did. Without a `job_id` lines are written one by one, as they come."""
    if ctx.screen.format is Format.TABLE:
        return _print(pieces, part, ctx)
    lines = (line for piece in _whole(_told(pieces, part, ctx)) for line in _lines(piece, part))
    if job_id is not None:
        found = list(lines)
        ctx.screen.show(view.lines(job_id, found))
        return bool(found)
    written = False
    for line in lines:
        ctx.screen.item({"type": "log", **line})
        written = True
    return written


def _print(pieces: Iterable[Piece], part: Part, ctx: Context) -> bool:
    """Write bytes as they are, and whole lines only where lines are looked through."""
    write = ctx.screen.raw if part.raw else ctx.screen.verbatim
    told = _told(pieces, part, ctx)
    last, written = None, False
    for piece in _whole(told) if part.grep is not None else told:
        data = piece.data if part.grep is None else view.matching(piece.data, part.grep)
        if not data:
            continue
        if part.wanted.every and piece.file != last:
            ctx.screen.note(f"==> {piece.file} <==")
            last = piece.file
        write(data)
        written = True
    return written


def _told(pieces: Iterable[Piece], part: Part, ctx: Context) -> Iterator[Piece]:
    """Say when a file begins anew."""
    for piece in pieces:
        if piece.was_reset:
            ctx.screen.note(f"{piece.file} was replaced, and begins anew")
        yield piece


def _whole(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces that end with a line each; what lacks its end waits for the rest, or for the end of all."""
    rests: dict[str, bytes] = {}
    for piece in pieces:
        before = b"" if piece.was_reset else rests.pop(piece.file, b"")
        data = before + piece.data
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            rests[piece.file] = data[whole:]
        if whole:
            yield replace(piece, data=data[:whole])
    for file, rest in rests.items():
        yield Piece(file, rest + b"\n")


def _lines(piece: Piece, part: Part) -> list[Item]:
    data = piece.data if part.grep is None else view.matching(piece.data, part.grep)
    return [view.line_of_file(piece.file, line, rank_of(piece.file)) for line in data.splitlines()]
