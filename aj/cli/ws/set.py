"""aj ws set: choose the workspace of this project, or of this user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import paths
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, filled
from aj.store import config
from aj.view import workspace as view
from aj.wire.azure import InventoryQuery
from aj.wire.resources import WorkspaceRow

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which one, and for whom."""

    name: Annotated[str | None, Word("NAME", "its name, or SUBSCRIPTION/GROUP/NAME", filled, values="workspace")] = None
    user: Annotated[bool, Option("--user", "for this user, in every project")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would be chosen")] = False


def run(opts: Options, ctx: Context) -> int:
    """Write the three settings that name it, all or none. Raises NotFound, UserError, AuthError.

    Coordinates are written as they are, without asking anybody: that works without a network.
    """
    project = None if opts.user else ctx.need_project()
    row = _named(ctx, opts.name or _asked(ctx))
    file = config.file_of(ctx.layout, project)
    if not opts.dry_run:
        words = {
            "workspace.name": row.name,
            "workspace.resource_group": row.resource_group,
            "workspace.subscription_id": row.subscription,
        }
        _, note = config.set_values(ctx.layout, project, words)
        if note:
            ctx.screen.note(note)
    ctx.screen.show(view.chosen(row, paths.shown(str(file), ctx.directory), is_dry=opts.dry_run))
    return 0


def _named(ctx: Context, word: str) -> WorkspaceRow:
    parts = word.split("/")
    if len(parts) == 1:
        return ctx.client.inventory.workspace(word).workspace
    if len(parts) != 3 or not all(parts):
        raise UserError(f"`{word}` is no workspace", hint="NAME, or SUBSCRIPTION/GROUP/NAME", code="bad-workspace")
    subscription, group, name = parts
    return WorkspaceRow(name, group, subscription, "", is_current=True)


def _asked(ctx: Context) -> str:
    """Let a person choose. Raises UserError naming the place of the name when nobody can answer."""
    if ctx.screen.may_ask:
        for row in ctx.client.inventory.workspaces(InventoryQuery()).rows:
            ctx.screen.note(f"{row.name}  {row.resource_group}  {row.region}")
    return ctx.screen.ask("which workspace", "NAME")
