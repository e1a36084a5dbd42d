"""aj template pull: bring the shared files of a repository here, never over what was edited here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, filled
from aj.cli.template import repository
from aj.store import changes as disk
from aj.store import lock, pulled
from aj.template import exchange, shared
from aj.template.exchange import Change, Kind
from aj.view import exchange as view

if TYPE_CHECKING:
    from aj.base.paths import Project
    from aj.cli.context import Context
    from aj.cli.template.repository import Remote


@dataclass(frozen=True)
class Options:
    """From where, and what may go."""

    repo: Annotated[
        str | None, Word("REPO", "owner/name, an address or a path; else the setting `template_repo`", filled)
    ] = None
    force: Annotated[
        bool,
        Option("-f --force", "also over local edits (the old file is kept as NAME.orig-N), and delete what is gone"),
    ] = False
    yes: Annotated[bool, Option("-y --yes", "delete without asking")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would change")] = False


def run(opts: Options, ctx: Context) -> int:
    """Pull. Raises Refused over local edits, naming them; nothing has changed then. All files change, or none."""
    project = ctx.need_project()
    with repository.fetched(ctx, project, opts.repo) as remote:
        local = shared.read(project.directory)
        plan = exchange.pull(remote.files, local, remote.base.files)
        gone = [change for change in plan if change.kind is Kind.DELETED]
        changes = plan if opts.force else [change for change in plan if change.kind is not Kind.DELETED]
        _refuse_edited(changes, opts, remote, both=bool(exchange.moved(remote.files, local, remote.base.files)))
        if gone and not opts.force:
            left = repository.names([change.path for change in gone])
            ctx.screen.note(f"the repository has no more, and you still have: {left} (`--force` deletes)")
        repository.tell_scripts(ctx, changes)
        kept: dict[str, Path] = {}
        if not opts.dry_run:
            if gone and opts.force:
                ctx.screen.confirm(f"delete {repository.names([change.path for change in gone])}", yes=opts.yes)
            kept = _carry_out(changes, remote, project, ctx)
        ctx.screen.show(view.done("pull", changes, remote.url, remote.copy.commit, kept=kept, is_dry=opts.dry_run))
    return 0


def _refuse_edited(changes: Sequence[Change], opts: Options, remote: Remote, *, both: bool) -> None:
    edited = [change.path for change in changes if change.is_edited]
    if edited and not opts.force:
        shares = "`aj template push` shares yours, `aj template pull --force` keeps it as NAME.orig-N"
        on = repository.WAY_OUT if both else shares
        raise Refused(
            f"edited here, and not as in {remote.url}: {repository.names(edited)}",
            hint=f"`aj template diff` shows how; {on}",
            code="local-edits",
            details={"files": edited},
        )


def _carry_out(changes: Sequence[Change], remote: Remote, project: Project, ctx: Context) -> dict[str, Path]:
    """Change all files or none, and keep what the repository had. Raises Refused, AjError."""
    ctx.layout.prepare()
    with lock.held(pulled.lock_of(ctx.layout, project.key)):
        note = pulled.note_of(ctx.layout, project.key)
        kept = disk.apply(project.directory, [_change(change) for change in changes], note)
        left = {path: digest for path, digest in remote.base.files.items() if path not in remote.files}
        gone = {change.path for change in changes if change.kind is Kind.DELETED}
        repository.remember(ctx, project, remote, remote.files, {p: d for p, d in left.items() if p not in gone})
    return kept


def _change(change: Change) -> disk.Change:
    """Say a change of the plan to the disk: it holds only while the old file is the one that was planned for."""

    def is_as_planned(old: Path | None) -> bool:
        return change.old == (shared.read_file(old) if old is not None else None)

    new = change.new
    return disk.Change(
        change.path,
        new.data if new else None,
        0o755 if new and new.is_executable else 0o644,
        is_as_planned,
        keeps=change.is_edited or change.kind is Kind.DELETED,
    )
