"""aj secrets create: keep a value that jobs are given by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import value
from aj.cli.declare import Option, Word, filled
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Its name, and where its value is."""

    name: Annotated[str, Word("NAME", "the variable that a job finds", filled)]
    source: Annotated[str | None, Option("--from", "the value's file; else stdin", "FILE", filled, values="file")] = (
        None
    )


def run(opts: Options, ctx: Context) -> int:
    """Keep it. Raises UserError on a bad name or value, Refused when the name is taken."""
    found = value.read(ctx, opts.source, f"aj secrets create {opts.name}")
    done = ctx.client.buckets.save_secret(opts.name, found)
    ctx.screen.show(action.done("create", [action.item(opts.name, status=done.status, state=None)], done.status))
    return 0
