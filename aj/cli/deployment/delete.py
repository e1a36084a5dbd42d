"""aj deployment delete: end deployments and remove them with their logs."""

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

    names: Annotated[tuple[str, ...], Word("NAME", "the deployments", filled, many=True, values="deployment")]
    force: Annotated[bool, Option("--force", "terminate their unfinished jobs, too")] = False
    yes: Annotated[bool, Option("-y --yes", "do not ask")] = False


def run(opts: Options, ctx: Context) -> int:
    """Delete them. Raises NotFound, Refused while one has unfinished jobs, or without a yes."""
    jobs = " and terminate their jobs" if opts.force else ""
    ctx.screen.confirm(f"delete {', '.join(opts.names)} with replicas and logs{jobs}", yes=opts.yes)

    def delete(name: str) -> Item:
        done = ctx.client.deployments.delete(name, force=opts.force)
        ctx.tell_warnings(done.warnings)
        return action.item(name, status="ok", state=None, detail="gone once its replicas have ended")

    outcome = several.each(ctx, opts.names, delete)
    ctx.screen.show(action.done("delete", outcome.items, outcome.status))
    return outcome.code
