"""Where a new project goes, and the folders that it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import paths
from aj.base.errors import AjError
from aj.base.paths import PROJECT_FOLDER, Project
from aj.store import atomic

if TYPE_CHECKING:
    from aj.cli.context import Context

FOLDERS = ("template", "account", "environment", "storage", "scripts")


def choose(ctx: Context, *, yes: bool) -> Project:
    """Return the project of this very folder, or the one that AJ_HOME names. Raises Refused inside another one."""
    above = ctx.project
    if ctx.settings.get("AJ_HOME") and above:
        return above
    project = Project(ctx.directory / PROJECT_FOLDER)
    if above and above.directory != project.directory:
        where = paths.shown(above.directory, ctx.directory)
        ctx.screen.confirm(f"make a project inside another one ({where})", yes=yes)
        ctx.screen.warn(
            f"this is a project of its own inside another one, {above.directory}: templates and settings"
            " of that one do not count here",
            code="nested-project",
        )
    return project


def missing(project: Project) -> list[Path]:
    """Return the folders that the project does not have yet, parents first."""
    due = [project.directory, *(project.directory / name for name in FOLDERS)]
    return [folder for folder in due if not folder.is_dir()]


@contextmanager
def made(folders: list[Path]) -> Iterator[None]:
    """Make folders; when the block fails, those that are still empty go again. Raises AjError naming the path."""
    done: list[Path] = []
    try:
        for folder in folders:
            try:
                folder.mkdir()
            except OSError as error:
                raise atomic.cannot_write(folder, error) from error
            done.append(folder)
        yield
    except BaseException:
        for folder in reversed(done):
            if not os.listdir(folder):
                folder.rmdir()
        raise


def put_aside(path: Path) -> Path:
    """Rename a file to `NAME.orig-N` and return where it is now. Never overwrites. Raises AjError."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.orig-{number}")):
        number += 1
    try:
        os.rename(path, aside)
    except OSError as error:
        raise AjError(f"cannot put {path} aside: {error.strerror}", code="cannot-write") from error
    return aside
