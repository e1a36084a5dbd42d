"""The repository that a project shares its templates by, as a command needs it: chosen, fetched, read, compared."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import text
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model import repository
from aj.net.git import Copy, Git
from aj.store import pulled
from aj.store.pulled import Pulled
from aj.template import shared
from aj.template.shared import File

if TYPE_CHECKING:
    from aj.base.paths import Project
    from aj.cli.context import Context
    from aj.model.repository import Address
    from aj.template.exchange import Change

NAMED = 10  # more names than this are a list, not a sentence


@dataclass(frozen=True)
class Remote:
    """A repository as it is now. `base` is what the last pull or push of this project left, if it was this one."""

    git: Git
    copy: Copy
    files: Mapping[str, File]
    base: Pulled

    @property
    def url(self) -> str:
        return self.copy.address.url


# What leads on when both sides changed something: a pull would lose edits, a push what others did.
WAY_OUT = (
    "`aj template pull --force` takes theirs and keeps yours as NAME.orig-N: merge by hand, then `aj template push`"
)


@contextlib.contextmanager
def fetched(ctx: Context, project: Project, word: str | None, *, takes_none: bool = False) -> Iterator[Remote]:
    """Fetch the repository that is meant and read what it shares; the copy is gone after the block.

    `takes_none` says that the command line has no place for one.

    Raises UserError when none is meant, Refused naming what is no plain file, and as Git.fetch.
    """
    ctx.take_back_pull(project)
    last = pulled.read(ctx.layout, project.key)
    address = _chosen(ctx, project, word, last, takes_none=takes_none)
    git = Git(ctx.settings)
    ctx.screen.progress(f"asking {address.url}")
    with tempfile.TemporaryDirectory(prefix="aj-git-") as folder:
        copy = git.fetch(address, Path(folder) / "copy")
        base = last if last is not None and last.repository == address.url else Pulled(address.url, None)
        yield Remote(git, copy, _read(git, copy), base)


def _chosen(ctx: Context, project: Project, word: str | None, last: Pulled | None, *, takes_none: bool) -> Address:
    """Return the repository: the one that was typed, that of the settings, that of the last pull."""
    if word is not None:
        return repository.read(word, ctx.directory)
    setting = ctx.config.text("template_repo")
    if setting is not None:
        return repository.read(setting, project.root)
    if last is not None:
        return repository.read(last.repository, project.root)
    always, once = "`aj config set template_repo REPO`", f"`aj {ctx.command.name} REPO`" if ctx.command else ""
    ways = always if takes_none else f"{always}, or once {once}"
    hint = ctx.missed("template_repo", f"{ways}: REPO is owner/name, an address or a path")
    raise UserError("no repository is named", hint=hint, code="no-repository")


def _read(git: Git, copy: Copy) -> dict[str, File]:
    import os

    entries = git.entries(copy)
    paths = set(shared.wanted(((one.mode, one.path, one.size) for one in entries), copy.address.url))
    kept = {os.fsdecode(one.path): one for one in entries if os.fsdecode(one.path) in paths}
    found = git.files(copy, [one.object for one in kept.values()]) if kept else {}
    return {path: File(found[one.object], one.mode == "100755") for path, one in sorted(kept.items())}


def remember(
    ctx: Context,
    project: Project,
    remote: Remote,
    files: Mapping[str, File],
    earlier: Mapping[str, str] | None = None,
    *,
    commit: str | None = None,
) -> None:
    """Keep what project and repository have in common now, and digests of files that came from there `earlier`.

    Raises AjError when the disk refuses.
    """
    known = {**(earlier or {}), **shared.digests(files)}
    pulled.write(ctx.layout, project.key, Pulled(remote.url, commit or remote.copy.commit, known))


def names(paths: Sequence[str]) -> str:
    """Name some files, not more than one can read."""
    return text.some(paths, NAMED)


def tell_scripts(ctx: Context, changes: Sequence[Change]) -> None:
    """Name the scripts that are new or others now: they run with the jobs."""
    found = [change.path for change in changes if change.new is not None and change.path.startswith("scripts/")]
    if found:
        ctx.screen.note(f"scripts that run in your jobs: {names(found)}")
