"""aj bucket create: make buckets; one that is there stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import several
from aj.cli.declare import Option, Word, filled
from aj.view import action

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Which buckets, and whose."""

    names: Annotated[tuple[str, ...], Word("NAME", "3 to 63 lower-case letters, digits and `-`", filled, many=True)]
    credentials: Annotated[
        str | None,
        Option("--credentials", "who opens it; else it is a folder of this machine", "NAME", values="credential"),
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Make them. Raises UserError on a bad name, NotFound without the credential, Refused without the right."""

    def make(name: str) -> Item:
        done = ctx.client.buckets.create(name, opts.credentials)
        return action.item(name, status=done.status, state=None, detail=done.detail)

    outcome = several.each(ctx, opts.names, make)
    ctx.screen.show(action.done("create", outcome.items, outcome.status))
    return outcome.code
