"""aj bucket delete: remove buckets with everything in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import text
from aj.base.noun import dataclass
from aj.cli import several
from aj.cli.declare import Option, Word, filled
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item

COUNTED = 1000  # objects that are counted for the question


@dataclass(frozen=True)
class Options:
    """Which buckets."""

    names: Annotated[tuple[str, ...], Word("NAME", "the buckets", filled, many=True, values="bucket")]
    credentials: Annotated[
        str | None, Option("--credentials", "who opens it; else a folder of this machine", "NAME", values="credential")
    ] = None
    yes: Annotated[bool, Option("-y --yes", "do not ask")] = False


def run(opts: Options, ctx: Context) -> int:
    """Delete them. Raises NotFound, Refused while a job uses one or without a yes."""
    what = ", ".join(opts.names if opts.yes else [_with_count(opts, ctx, name) for name in opts.names])
    ctx.screen.confirm(f"delete {what}", yes=opts.yes)

    def delete(name: str) -> Item:
        done = ctx.client.buckets.delete(name, opts.credentials)
        return action.item(name, status=done.status, state=None, detail=done.detail)

    outcome = several.each(ctx, opts.names, delete)
    ctx.screen.show(action.done("delete", outcome.items, outcome.status))
    return outcome.code


def _with_count(opts: Options, ctx: Context, name: str) -> str:
    """Say how much is in a bucket that is about to go."""
    page = ctx.client.buckets.objects(name, opts.credentials, limit=COUNTED)
    more = "more than " if page.cursor else ""
    return f"bucket {page.label} with {more}{text.plural(len(page.objects), 'object')}"
