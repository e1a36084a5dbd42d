"""aj init local: a project that runs on this machine, with a template and a sample script."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base import paths
from aj.base.noun import dataclass
from aj.cli.declare import Option
from aj.cli.init import place
from aj.store import atomic
from aj.view import init as view

if TYPE_CHECKING:
    from aj.cli.context import Context

NEXT = ("aj run -t local --wait train.py", "aj template show local", "aj help templates")
SAMPLE = Path(__file__).parent / "sample"
SETTINGS = '# Settings of this project: `aj config show` tells all of them.\ntemplate = "local"\n'


@dataclass(frozen=True)
class Options:
    """How to treat what is there."""

    yes: Annotated[bool, Option("-y --yes", "ask nothing")] = False
    force: Annotated[bool, Option("-f --force", "write all files anew; what was there is kept as NAME.orig-N")] = False


def run(opts: Options, ctx: Context) -> int:
    """Make the project. What exists already is left as it is. Raises Refused inside another project."""
    project = place.choose(ctx, yes=opts.yes)
    files = {
        project.directory / "aj.toml": SETTINGS.encode(),
        project.directory / "template" / "local.yaml": (SAMPLE / "local.yaml").read_bytes(),
        project.root / "train.py": (SAMPLE / "train.py.txt").read_bytes(),
    }
    written = [path for path, content in files.items() if _write(path, content, force=opts.force, ctx=ctx)]
    ctx.screen.show(view.made(project.directory, written, NEXT, ctx.directory))
    return 0


def _write(path: Path, content: bytes, *, force: bool, ctx: Context) -> bool:
    """Write a file unless it is there; whether it was written. Raises AjError naming the path."""
    if os.path.lexists(path):
        if not force:
            ctx.screen.note(f"{paths.shown(path, ctx.directory)} is there and stays as it is")
            return False
        ctx.screen.note(f"kept {paths.shown(place.put_aside(path), ctx.directory)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise atomic.cannot_write(path.parent, error) from error
    atomic.write_bytes(path, content, mode=0o644)
    return True
