"""aj daemon logs: what the daemon wrote into its log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.cli.declare import Option, whole

if TYPE_CHECKING:
    from aj.cli.context import Context

POLL_S = 0.2  # a person reads along; this is soon enough and costs nothing


@dataclass(frozen=True)
class Options:
    """How much of it."""

    follow: Annotated[bool, Option("-f --follow", "go on until Ctrl-C")] = False
    tail: Annotated[int | None, Option("--tail", "only the last lines", "N", whole())] = None


def run(opts: Options, ctx: Context) -> int:
    """Print the log. Raises NotFound when no daemon has ever written one."""
    path = ctx.layout.daemon_log
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no log: {path}", hint="`aj daemon start`", code="no-log") from None
    lines = data.splitlines(keepends=True)
    ctx.screen.verbatim(b"".join(lines[len(lines) - opts.tail :] if opts.tail is not None else lines))
    if opts.follow:
        _follow(path, len(data), ctx)
    return 0


def _follow(path: Path, offset: int, ctx: Context) -> None:
    while True:
        ctx.clock.sleep(POLL_S)
        size = path.stat().st_size if path.exists() else 0
        if size < offset:
            offset = 0  # it was turned over: go on with the new file
        if size > offset:
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read(size - offset)
            offset += len(data)
            ctx.screen.verbatim(data)
