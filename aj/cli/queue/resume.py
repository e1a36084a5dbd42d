"""aj queue resume: open this project, or all, so that their waiting tickets go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Option
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which projects."""

    every: Annotated[bool, Option("--all", "every project that has a queue")] = False


def run(opts: Options, ctx: Context) -> int:
    """Go on with what waits. Raises Refused when another daemon owns the project."""
    done = ctx.client.queue.resume(all_projects=opts.every)
    ctx.tell_warnings(done.warnings)
    what = "all" if opts.every else ctx.key
    status = "noop" if done.status == "noop" else "ok"
    ctx.screen.show(action.done("resume", [action.item(what, status=status, state=None, detail=done.detail)], status))
    return 0
