"""aj template push: share the templates of this project as one commit on top of what others have shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import text
from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.cli.declare import Option, filled
from aj.cli.template import repository
from aj.net.git import Content
from aj.template import exchange, shared
from aj.view import exchange as view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aj.cli.context import Context
    from aj.template.exchange import Change


@dataclass(frozen=True)
class Options:
    """What the commit says."""

    message: Annotated[str | None, Option("-m --message", "what the commit says", "MSG", filled)] = None
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would change")] = False


def run(opts: Options, ctx: Context) -> int:
    """Push. Raises Refused when the repository changed since the last pull; nothing is sent then."""
    project = ctx.need_project()
    local = shared.read(project.directory)
    with repository.fetched(ctx, project, None, takes_none=True) as remote:
        moved = exchange.moved(remote.files, local, remote.base.files)
        if moved:
            edited = any(change.is_edited for change in exchange.pull(remote.files, local, remote.base.files))
            on = repository.WAY_OUT if edited else "`aj template pull` brings it, then `aj template push`"
            raise Refused(
                f"others changed {remote.url} since your last pull: {repository.names(moved)}",
                hint=f"`aj template diff` shows how; {on}",
                code="remote-changed",
                details={"files": moved},
            )
        changes = exchange.push(remote.files, local)
        commit = remote.copy.commit
        if changes and not opts.dry_run:
            contents = {one.path: Content(one.new.data, one.new.is_executable) if one.new else None for one in changes}
            commit = remote.git.commit(remote.copy, contents, opts.message or _message(changes))
            remote.git.push(remote.copy, commit)
        if not opts.dry_run:
            repository.remember(ctx, project, remote, local, commit=commit)
        ctx.screen.show(view.done("push", changes, remote.url, commit, is_dry=opts.dry_run))
    return 0


def _message(changes: Sequence[Change]) -> str:
    """Say what a commit changes when nobody else says it."""
    if len(changes) == 1:
        return f"{changes[0].path} {changes[0].kind.value}"
    return f"{text.plural(len(changes), 'file')}: {repository.names([change.path for change in changes])}"
