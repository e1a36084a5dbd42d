"""aj secrets delete: forget saved values."""

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
    """Which ones."""

    names: Annotated[tuple[str, ...], Word("NAME", "the secrets", filled, many=True, values="secret")]
    yes: Annotated[bool, Option("-y --yes", "do not ask")] = False


def run(opts: Options, ctx: Context) -> int:
    """Forget them. Raises NotFound, and Refused without a yes."""
    ctx.screen.confirm(f"delete secret {', '.join(opts.names)}", yes=opts.yes)

    def delete(name: str) -> Item:
        done = ctx.client.buckets.delete_secret(name)
        return action.item(name, status=done.status, state=None)

    outcome = several.each(ctx, opts.names, delete)
    ctx.screen.show(action.done("delete", outcome.items, outcome.status))
    return outcome.code
