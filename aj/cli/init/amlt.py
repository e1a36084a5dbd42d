"""aj init amlt: a project of amlt's own beside this one, so that amlt knows where to put what it uploads."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base import paths, proc, redact
from aj.base.errors import AjError, ConfigError, OptionError, OutcomeUnknown, Place, UserError
from aj.base.noun import dataclass
from aj.cli.declare import Option
from aj.cli.init import place
from aj.view import init as view

if TYPE_CHECKING:
    from aj.cli.context import Context

CONFIG = ".amltconfig"
LIMIT_S = 300.0  # amlt signs in and makes a container
LARGEST = 1 << 20


@dataclass(frozen=True)
class Options:
    """How amlt's project is called, and the storage account that it uses."""

    project: Annotated[str | None, Option("--project", "amlt's name for the project", "NAME")] = None
    storage: Annotated[str | None, Option("--storage", "the storage account it uploads to", "ACCOUNT")] = None
    force: Annotated[bool, Option("-f --force", "let amlt make the project again; the old file is kept")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would be done")] = False


@dataclass(frozen=True)
class Known:
    """What `.amltconfig` says."""

    project: str
    storage: str


def run(opts: Options, ctx: Context) -> int:
    """Keep a valid `.amltconfig`, else let amlt make the project. Raises ConfigError, UserError, AjError."""
    root = ctx.need_project().root
    program = _program(ctx)
    lines = _workspace_lines(ctx)
    file = root / CONFIG
    there = None if opts.force else _valid(file, ctx)
    if there is not None:
        _mind_options(opts, there)
        ctx.screen.show(view.of_amlt(file, there.project, there.storage, lines, ctx.directory, how="kept"))
        return 0
    project = opts.project or ctx.screen.ask("name of amlt's project", "--project")
    storage = opts.storage or ctx.screen.ask("storage account that amlt uploads to", "--storage")
    for option, word in (("--project", project), ("--storage", storage)):
        if word.startswith("-"):
            raise OptionError(f"{option} {word}: amlt would take that for an option of its own")
    if opts.dry_run:
        ctx.screen.show(view.of_amlt(file, project, storage, lines, ctx.directory, how="planned"))
        return 0
    made = _create([program, "project", "create", project, storage], file, ctx)
    ctx.screen.show(view.of_amlt(file, made.project, made.storage, lines, ctx.directory, how="created"))
    return 0


def _valid(file: Path, ctx: Context) -> Known | None:
    """Read `.amltconfig`; one that is of no use is told, and counts as none."""
    try:
        return read(file)
    except ConfigError as error:
        ctx.warn(error.message, code=error.code, file=str(file), line=error.place.line if error.place else None)
        return None


def read(file: Path) -> Known | None:
    """Read `.amltconfig`; None when there is none. Raises ConfigError at its place when it is no such file."""
    try:
        raw = file.read_bytes()[:LARGEST]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", place=Place(str(file))) from error
    try:
        found = json.loads(raw)
    except json.JSONDecodeError as error:
        spot = Place(str(file), error.lineno, error.colno)
        raise ConfigError(f"not JSON: {error.msg.lower()}", place=spot, code="broken-amltconfig") from None
    except (UnicodeDecodeError, RecursionError):
        raise ConfigError("not JSON", place=Place(str(file)), code="broken-amltconfig") from None
    names = [found.get(key) if isinstance(found, dict) else None for key in ("project_name", "storage_account_name")]
    if not all(isinstance(name, str) and name for name in names):
        words = "it takes an object with the texts `project_name` and `storage_account_name`"
        raise ConfigError(words, place=Place(str(file), 1), code="broken-amltconfig")
    return Known(str(names[0]), str(names[1]))


def _program(ctx: Context) -> str:
    path = ctx.settings.get("PATH")
    found = proc.find("amlt", path)
    if found is None:
        raise ConfigError(
            f"no program `amlt` on PATH: {path or 'it is empty'}", hint="install amlt, then again", code="no-amlt"
        )
    return found


def _workspace_lines(ctx: Context) -> tuple[str, ...]:
    """Return the line that tells amlt of the chosen workspace. Raises UserError when none is chosen."""
    name = ctx.config.text("workspace.name")
    if name is None:
        raise UserError(
            "no workspace is chosen",
            hint=ctx.missed("workspace.name", "`aj config set workspace.name NAME`"),
            code="no-workspace-chosen",
        )
    words = ["amlt", "workspace", "add", name]
    for option, key in (
        ("--subscription", "workspace.subscription_id"),
        ("--resource-group", "workspace.resource_group"),
    ):
        if value := ctx.config.text(key):
            words += [option, value]
    return (shlex.join(words), "aj run --amlt -t NAME COMMAND")


def _mind_options(opts: Options, there: Known) -> None:
    """Refuse other names than those that amlt knows. Raises OptionError."""
    for option, asked, known in (
        ("--project", opts.project, there.project),
        ("--storage", opts.storage, there.storage),
    ):
        if asked is not None and asked != known:
            raise OptionError(f"{option} {asked}: {CONFIG} says {known}", hint="`--force` lets amlt make it again")


def _create(argv: list[str], file: Path, ctx: Context) -> Known:
    """Let amlt make the project; what was there stays aside. Raises AjError, OutcomeUnknown."""
    aside = place.put_aside(file) if os.path.lexists(file) else None
    if aside:
        ctx.screen.note(f"kept {paths.shown(aside, ctx.directory)}")
    try:
        made = _run(argv, file, ctx)
    except AjError:
        if aside and not file.exists():
            aside.rename(file)
        raise
    return made


def _run(argv: list[str], file: Path, ctx: Context) -> Known:
    words = shlex.join(["amlt", *argv[1:]])
    try:
        code = proc.follow(
            argv,
            lambda line: ctx.screen.note(redact.text(line)),
            cwd=file.parent,
            env={name: value for name, value in ctx.settings.env.items() if not name.startswith("AJ_")},
            timeout_s=LIMIT_S,
        )
    except TimeoutError as error:
        raise OutcomeUnknown(f"`{words}` did not end within {LIMIT_S:g} s", hint="`amlt project list` tells") from error
    except OSError as error:
        raise AjError(f"cannot start {argv[0]}: {error.strerror}", code="cannot-start") from error
    if code:
        raise AjError(f"`{words}` ended with exit status {code}", code="amlt-failed", hint="its words stand above")
    made = read(file)
    if made is None:
        raise AjError(f"`{words}` ended well, but there is no {CONFIG}", code="amlt-failed", hint=f"`{words}` by hand")
    return made
