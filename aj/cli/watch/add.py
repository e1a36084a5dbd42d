"""aj watch add: hear of a job's changes, by commands, web hooks, the desktop, or `aj watch listen`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import watching
from aj.cli.declare import Option, Word, filled
from aj.cli.notify import Notify
from aj.view import watch as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which jobs, and how to be told."""

    jobs: Annotated[tuple[str, ...], Word("ID", "the jobs, their tickets or names", filled, many=True, values="job")]
    notify: Notify = ()
    workspace: Annotated[
        str | None, Option("--ws", "where to look for jobs that are not ours", "NAME", filled, values="workspace")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Watch them. Raises NotFound, UserError for a word that names several jobs."""
    found = [watching.find(ctx, word, opts.workspace) for word in opts.jobs]
    done = [ctx.client.watches.add(one.id, one.name, handle=one.handle, ways=opts.notify) for one in found]
    ctx.screen.show(view.done("watch", list(zip([one.id for one in found], done))))
    if not opts.notify:
        ctx.screen.note("next: `aj watch listen`")
    return 0
