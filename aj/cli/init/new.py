"""aj init: a project for this folder, with the answers that nobody has given yet asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError, UserError
from aj.base.noun import dataclass
from aj.cli.declare import Option
from aj.cli.init import place
from aj.model import repository
from aj.store import config
from aj.store.config import Config
from aj.store.keys import EXPERIMENT
from aj.view import init as view

if TYPE_CHECKING:
    from aj.base.paths import Project
    from aj.cli.context import Context

HEAD = "# Settings of this project: `aj config show` tells all of them.\n"
NONE = "-"  # what a person types for no answer where one is proposed
WORKSPACE = ("workspace.subscription_id", "workspace.resource_group", "workspace.name")


@dataclass(frozen=True)
class Question:
    """One thing to settle: the key of its setting, the option that answers it, and the words that ask."""

    key: str
    option: str
    asks: str


QUESTIONS = (
    Question("template_repo", "--repo", "repository of shared templates (owner/name, address or path)"),
    Question("workspace.name", "--workspace", "Azure ML workspace (NAME, or SUBSCRIPTION/GROUP/NAME)"),
    Question("experiment", "--experiment", f"experiment (`{NONE}` for none)"),
)


@dataclass(frozen=True)
class Options:
    """The answers. An empty word, as in `--repo ''`, is the answer that there is none."""

    repo: Annotated[str | None, Option("--repo", "where templates are shared; '' for nowhere", "URL")] = None
    workspace: Annotated[
        str | None, Option("--workspace", "NAME or SUBSCRIPTION/GROUP/NAME; '' for none", "NAME", values="workspace")
    ] = None
    experiment: Annotated[
        str | None, Option("--experiment", "of jobs without one of their own; '' for none", "NAME")
    ] = None
    force: Annotated[bool, Option("-f --force", "ask again for what is settled; nothing is deleted")] = False
    yes: Annotated[bool, Option("-y --yes", "also inside another project")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would be written")] = False


def run(opts: Options, ctx: Context) -> int:
    """Make the project, or settle what is open in it. Raises UserError naming what nobody answered."""
    project = place.choose(ctx, yes=opts.yes)
    there = config.read(ctx.layout, project)
    answers = _answers(opts, there, ctx)
    folders = place.missing(project)
    file = config.file_of(ctx.layout, project)
    changes = {key: word for key, word in answers.items() if word != _current(there, key)}
    written = [*folders, *([file] if changes or not file.exists() else [])]
    if written and not opts.dry_run:
        with place.made(folders):
            _, note = config.set_values(ctx.layout, project, changes, HEAD) if file in written else ((), None)
        if note:
            ctx.screen.note(note)
    settled = {**_settled(there), **answers}
    ctx.screen.show(
        view.made(project.directory, written, _next(settled, project), ctx.directory, settled, is_dry=opts.dry_run)
    )
    return 0


def _answers(opts: Options, there: Config, ctx: Context) -> dict[str, str]:
    """Return the settings that were answered: by an option, or now by a person. Raises UserError."""
    given = {"--repo": opts.repo, "--workspace": opts.workspace, "--experiment": opts.experiment}
    open_ones = [one for one in QUESTIONS if given[one.option] is None and (opts.force or not _current(there, one.key))]
    if open_ones and not ctx.screen.may_ask:
        names = ", ".join(one.option for one in open_ones)
        raise UserError(
            f"no terminal to ask on, and no answer for {names}",
            hint=f"give it; `{open_ones[0].option} ''` says that there is none",
            code="no-answer",
        )
    for one in open_ones:
        given[one.option] = ctx.screen.propose(one.asks, _proposal(one, there, ctx), one.option)
    found: dict[str, str] = {}
    for one in QUESTIONS:
        word = given[one.option]
        if word and word != NONE:
            found |= _read(one, word, ctx)
    return found


def _proposal(one: Question, there: Config, ctx: Context) -> str:
    """Return what an empty line would mean: what is settled, or for the experiment the folder's name."""
    current = _current(there, one.key)
    if current or one.key != "experiment":
        return current
    try:
        return str(EXPERIMENT.check(ctx.directory.name))
    except ValueError:
        return ""


def _read(one: Question, word: str, ctx: Context) -> dict[str, str]:
    """Return the settings that an answer means. Raises OptionError."""
    if one.option == "--repo":
        address = repository.read(word, ctx.directory)
        if address.password is not None or address.user is not None:
            ctx.screen.note("the user name and password are left out of the saved address")
        return {one.key: address.url}
    if one.option == "--workspace" and "/" in word:
        parts = word.split("/")
        if len(parts) != len(WORKSPACE) or not all(parts):
            raise OptionError(
                f"`{word}` is no workspace", hint="NAME, or SUBSCRIPTION/GROUP/NAME", code="bad-workspace"
            )
        return dict(zip(WORKSPACE, parts, strict=True))
    return {one.key: word}


def _current(there: Config, key: str) -> str:
    """Return what the files say; empty when they say nothing. Raises ConfigError when it is wrong."""
    value = there.value(key) if there.setting(key).value not in (None, "") else None
    return "" if value is None else str(value)


def _settled(there: Config) -> dict[str, str]:
    keys = ("template", "template_repo", *WORKSPACE, "experiment")
    return {key: value for key in keys if (value := _current(there, key))}


def _next(settled: Mapping[str, str], project: Project) -> tuple[str, ...]:
    """Return what to type next."""
    first: tuple[str, ...] = ("aj template pull",) if "template_repo" in settled else ("aj template init",)
    return (*first, "aj template list", "aj run -t NAME COMMAND")
