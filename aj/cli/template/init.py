"""aj template init: a new template for a service, with comments, that passes every check."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.backend import registry
from aj.base import paths
from aj.base.errors import OptionError, Refused, UserError
from aj.base.noun import dataclass
from aj.base.paths import PROJECT_FOLDER, Project
from aj.cli.declare import Option, Word, choice, filled
from aj.cli.init import place
from aj.store import atomic
from aj.template import check, edit, source
from aj.view import init as view

if TYPE_CHECKING:
    from aj.cli.context import Context

SAMPLES = Path(__file__).parent / "sample"
LOCAL = Path(__file__).parents[1] / "init" / "sample" / "local.yaml"


@dataclass(frozen=True)
class Options:
    """Which service, and what is known already."""

    name: Annotated[str | None, Word("NAME", "the template; else the name of the service", filled)] = None
    service: Annotated[
        str, Option("--service", "where its jobs run (local)", "S", choice(*registry.ENTRIES), values="service")
    ] = "local"
    values: Annotated[
        tuple[str, ...], Option("--set", "a value, as `target.name=gpu` or `jobs[0].sku=G8`", "K=V", repeats=True)
    ] = ()
    force: Annotated[bool, Option("-f --force", "write it anew; what was there is kept as NAME.orig-N")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would be written")] = False


def run(opts: Options, ctx: Context) -> int:
    """Write the template. Raises Refused when there is one, UserError when the values make it invalid."""
    project = ctx.need_project()
    name = opts.name or opts.service
    if not source.is_name(name):
        raise OptionError(
            f"`{name}` is no name of a template", hint="letters, digits, `_`, `.` and `-`", code="bad-name"
        )
    text = _text(opts)
    _check(name, text)
    file = project.directory / "template" / f"{name}.yaml"
    if file.exists() or file.is_symlink():
        _make_room(file, opts, ctx)
    if not opts.dry_run:
        atomic.make_folder(file.parent)
        atomic.write_bytes(file, text.encode(), mode=0o644)
    following = (f"aj template show {name}", f"aj run -d -t {name} COMMAND", f"aj run -t {name} COMMAND")
    ctx.screen.show(view.made(project.directory, [file], following, ctx.directory, is_dry=opts.dry_run))
    return 0


def _text(opts: Options) -> str:
    """Return the text of the sample with the values that were given. Raises OptionError."""
    file = LOCAL if registry.traits(opts.service).is_local else SAMPLES / f"{opts.service}.yaml"
    text = file.read_text(encoding="utf-8")
    for pair in opts.values:
        path, equals, word = pair.partition("=")
        if not equals:
            raise OptionError(f"--set {pair}: no `=` in it", hint="`--set target.name=gpu`")
        text = edit.put(text, path, word)
    return text


def _check(name: str, text: str) -> None:
    """Check a template that is not written yet, as strictly as can be. Raises UserError with all faults."""
    with tempfile.TemporaryDirectory(prefix="aj-template-") as folder:
        project = Project(Path(folder) / PROJECT_FOLDER)
        (project.directory / "template").mkdir(parents=True)
        (project.directory / "template" / f"{name}.yaml").write_text(text, encoding="utf-8")
        (report,) = check.validate(project, [name], options_of=registry.options)
    if not report.is_clean:
        found = [found for found in report.issues if found.level.value != "note"]
        hint: Sequence[str] = [one.hint for one in found if one.hint]
        raise UserError(
            "; ".join(f"{one.path}: {one.message}" if one.path else one.message for one in found),
            hint=hint[0] if hint else "a value of `--set` does not fit",
            code="bad-template",
        )


def _make_room(file: Path, opts: Options, ctx: Context) -> None:
    shown = paths.shown(file, ctx.directory)
    if not opts.force:
        raise Refused(f"{shown} is there", hint="another NAME, or `--force`, which keeps it aside", code="exists")
    if not opts.dry_run:
        ctx.screen.note(f"kept {paths.shown(place.put_aside(file), ctx.directory)}")
