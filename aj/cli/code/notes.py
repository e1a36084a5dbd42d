"""What is said beside the code that travels: the ignore file of git, which is not ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.pack.selection import Selection

GIT = ".gitignore"


def tell_gitignore(selection: Selection, ctx: Context) -> None:
    """Say that git's ignore file is not read, where it is the only one in the code root."""
    if selection.ignore_file is None and (Path(selection.plan.root) / GIT).is_file():
        ctx.screen.note(f"{GIT} is not read, so what it names is sent too; `cp {GIT} .codeignore` takes it over")
