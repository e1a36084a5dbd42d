"""aj template diff: what is different between a repository's shared files and those of this project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Word, filled
from aj.cli.template import repository
from aj.template import exchange, shared
from aj.view import exchange as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """With which repository."""

    repo: Annotated[
        str | None, Word("REPO", "owner/name, an address or a path; else the setting `template_repo`", filled)
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Print the difference, repository first; none is no failure."""
    project = ctx.need_project()
    with repository.fetched(ctx, project, opts.repo) as remote:
        paths, words = exchange.diff(remote.files, shared.read(project.directory))
        ctx.screen.page(view.difference(paths, words, remote.url))
    return 0
