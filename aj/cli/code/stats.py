"""aj code stats: which files would travel with a job, how large they are, and why others stay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.backend import registry
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.cli.code import notes
from aj.cli.declare import Option, whole
from aj.model.code import CodePlan
from aj.pack import digest, scripts, walk
from aj.template import build, load, sections
from aj.view import code as view

if TYPE_CHECKING:
    from aj.base.paths import Project
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Of which tree, by which template's rules."""

    template: Annotated[
        str | None,
        Option(
            "-t --template", "with the patterns of this template; else of the default one", "NAME", values="template"
        ),
    ] = None
    directory: Annotated[
        str | None, Option("--code-dir", "of this folder; else of the working directory", "DIR", values="folder")
    ] = None
    top: Annotated[int, Option("--top", "how many of the largest files (10)", "N", whole())] = 10
    list_all: Annotated[bool, Option("--list-all", "every file")] = False
    explain: Annotated[
        tuple[str, ...], Option("--explain", "why this path is in or out", "PATH", repeats=True, values="file")
    ] = ()


def run(opts: Options, ctx: Context) -> int:
    """Print the figures. Raises UserError for what cannot be packed, NotFound for an unknown template."""
    plan = _plan(opts, ctx)
    explained = walk.explain(plan, opts.explain) if opts.explain else []
    selection = walk.select(plan, ctx.layout.stat_cache)
    for found in selection.warnings:
        ctx.warn(found.message, code=found.code, file=found.file, line=found.line)
    known = digest.of(selection) if selection.files or selection.links else None
    verdicts = [
        view.explanation(found, exists=_is_there(plan, path))
        for path, found in zip(opts.explain, explained, strict=True)
    ]
    ctx.screen.show(view.stats(selection, known, top=opts.top, all_files=opts.list_all, explained=verdicts))
    notes.tell_gitignore(selection, ctx)
    return 0


def _is_there(plan: CodePlan, path: str) -> bool:
    below = os.path.relpath(os.path.normpath(Path(plan.root) / path), plan.root)
    return os.path.lexists(scripts.place(plan, os.fsencode(below)))


def _plan(opts: Options, ctx: Context) -> CodePlan:
    root = Path(os.path.abspath(ctx.directory / (opts.directory or "")))
    if not root.is_dir():
        raise UserError(f"--code-dir {opts.directory}: no such directory")
    project = ctx.project
    own = _scripts(project, root) if project else None
    template = opts.template if opts.template is not None or not project else ctx.default_template()
    if template is None:
        return CodePlan(str(root), scripts=own)
    config = load.Library(ctx.need_project()).resolve(template).tree
    reader, _ = sections.config(config)
    facts = registry.options(reader.section("target").text("service") or "local")(config).facts
    return CodePlan(
        str(root),
        ignore=tuple(build.ignored(config, ctx.directory)),
        scripts=own,
        strict_links=not facts.runs_here,
        reserved=facts.reserves_runner,
        max_bytes=ctx.config.number("code.max_bytes"),
    )


def _scripts(project: Project, root: Path) -> str | None:
    """Return the project's scripts when they do not lie in the tree itself."""
    scripts = project.directory / "scripts"
    if os.path.realpath(project.root) == os.path.realpath(root) or not scripts.is_dir():
        return None
    return str(scripts)
