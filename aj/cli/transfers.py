"""One transfer, with its progress on stderr. Ctrl-C stops it; begun again, it goes on where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.base.clock import SYSTEM
from aj.view import bucket as view
from aj.wire.bucket import Direction, Transfer, TransferState

if TYPE_CHECKING:
    from aj.cli.context import Context

EVERY_S = 1.0  # between two lines of progress on a terminal
AGAIN = "the same command goes on where it was"
OTHERWISE = "what is named has to be changed first: trying again brings nothing more"
SELDOM_S = 30.0  # and where nobody looks on


def carry(ctx: Context, direction: Direction, where: str, path: str, credential: str | None) -> int:
    """Carry a transfer out and print what it did. Raises NotFound, Refused, OutcomeUnknown, and what stopped it."""
    bucket, _, prefix = where.partition("/")
    asked = Transfer(direction, bucket, str(ctx.directory / path), prefix, credential)
    every_s = EVERY_S if ctx.screen.streams.err_is_terminal else SELDOM_S
    told = SYSTEM.monotonic()
    answer = None
    for answer in ctx.client.buckets.transfer(asked):
        now = SYSTEM.monotonic()
        if answer.state is TransferState.RUNNING and now - told >= every_s:
            told = now
            ctx.screen.progress(view.progress(answer))
    assert answer is not None, "a transfer tells how it begins"
    ctx.tell_warnings(answer.warnings, code="passed-over")
    if answer.problem:
        ctx.screen.trouble(answer.problem, AGAIN if answer.goes_on else OTHERWISE)
    ctx.screen.show(view.moved(answer))
    return 0 if answer.state is TransferState.DONE else 1
