"""States that people take for one another: where a list of one is empty, what the other has is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aj.cli.context import Context

ALIKE = {"failed": "errored", "errored": "failed"}
MEANS = {"errored": "ended with an error of its program", "failed": "failed without its program being the reason"}


def tell_alike(ctx: Context, asked: Sequence[str], count: Callable[[str], int]) -> None:
    """Say how many are in the states that resemble those that were asked for; `count` counts those of one."""
    for state in dict.fromkeys(ALIKE[word] for word in asked if word in ALIKE):
        found = 0 if state in asked else count(state)
        if found:
            ctx.screen.note(f"{found} {MEANS[state]}: `-s {state}`")
