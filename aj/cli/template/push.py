"""aj template push: share the templates of this project as one commit on top of what others have shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.backend import registry
from aj.base import text
from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.cli.declare import Option, filled
from aj.cli.template import repository
from aj.net.git import Content
from aj.template import check, exchange, issue, shared
from aj.view import exchange as view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aj.base.paths import Project
    from aj.cli.context import Context
    from aj.template.exchange import Change


@dataclass(frozen=True)
class Options:
    """What the commit says."""

    message: Annotated[str | None, Option("-m --message", "what the commit says", "MSG", filled)] = None
    force: Annotated[bool, Option("--force", "also templates that are wrong")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would change")] = False


def run(opts: Options, ctx: Context) -> int:
    """Push. Raises Refused when the repository changed since the last pull, TemplateError on what is wrong.

    Nothing is sent then.
    """
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
        if not opts.force:
            _check(project, changes)
        commit = remote.copy.commit
        if changes and not opts.dry_run:
            contents = {one.path: Content(one.new.data, one.new.is_executable) if one.new else None for one in changes}
            commit = remote.git.commit(remote.copy, contents, opts.message or _message(changes))
            remote.git.push(remote.copy, commit)
        if not opts.dry_run:
            repository.remember(ctx, project, remote, local, commit=commit)
        ctx.screen.show(view.done("push", changes, remote.url, commit, is_dry=opts.dry_run))
    return 0


def _check(project: Project, changes: Sequence[Change]) -> None:
    """Refuse what nobody could submit with. Raises TemplateError with all that is wrong.

    What is wrong in files that are not sent is no reason, unless a part that is sent may be what they are wrong by.
    """
    sent = {project.directory / one.path for one in changes}
    if not sent:
        return
    is_part = any(path.suffix == ".yaml" and path.parent != project.directory / "template" for path in sent)
    reports = check.validate(project, options_of=registry.options)
    wrong = [one for report in reports if is_part or report.path in sent for one in report.issues if one.is_error]
    if wrong:
        error = issue.fatal(issue.distinct(wrong))
        error.hint = "mend it, `aj template validate` tells all; or `--force` shares it as it is"
        raise error


def _message(changes: Sequence[Change]) -> str:
    """Say what a commit changes when nobody else says it."""
    if len(changes) == 1:
        return f"{changes[0].path} {changes[0].kind.value}"
    return f"{text.plural(len(changes), 'file')}: {repository.names([change.path for change in changes])}"
