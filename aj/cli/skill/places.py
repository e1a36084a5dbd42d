"""Where coding agents look for skills, and what a command does there, one agent after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import aj.skill
from aj.base import paths
from aj.base.errors import AjError, OptionError, UserError, gravest
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, choice
from aj.store import skills
from aj.view import skill as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.store.skills import Copy

NAME = "aj"
# agent -> its folder of skills, below the home directory and below a project's root.
FOLDERS: Mapping[str, tuple[str, str]] = {
    "copilot": (".copilot/skills", ".github/skills"),
    "codex": (".codex/skills", ".codex/skills"),
    "claude": (".claude/skills", ".claude/skills"),
}
ALL = "all"


@dataclass(frozen=True)
class Options:
    """Which agents, and where."""

    agent: Annotated[str, Word("AGENT", "all, copilot, codex or claude", choice(ALL, *FOLDERS), values="agent")] = ALL
    project: Annotated[bool, Option("--project", "in this project, for everybody who works in it")] = False
    user: Annotated[bool, Option("--user", "for this user (the default)")] = False
    root: Annotated[
        str | None,
        Option("--root", "a folder in the place of the home directory or the project", "DIR", values="folder"),
    ] = None


@dataclass(frozen=True)
class Forcing(Options):
    """What may be overwritten, too."""

    force: Annotated[
        bool, Option("-f --force", "also over what others wrote or changed, which is kept as NAME.orig-N")
    ] = False


def packaged() -> dict[str, bytes]:
    """Return the files of the skill by name."""
    return {path.name: path.read_bytes() for path in sorted(Path(aj.skill.__file__).parent.glob("*.md"))}


def copies(opts: Options, ctx: Context) -> dict[str, Copy]:
    """Return how the copy of each agent stands. Raises OptionError, UserError."""
    if opts.project and opts.user:
        raise OptionError("`--project` and `--user`: one of them")
    root, files = _root(opts, ctx), packaged()
    agents = FOLDERS if opts.agent == ALL else {opts.agent: FOLDERS[opts.agent]}
    return {
        agent: skills.look(root / folders[1 if opts.project else 0] / NAME, files) for agent, folders in agents.items()
    }


def _root(opts: Options, ctx: Context) -> Path:
    if opts.root is not None:
        root = ctx.directory / opts.root
        if not root.is_dir():
            raise UserError(f"--root {opts.root}: no such folder")
        return root
    if opts.project:
        return ctx.need_project().root
    home = paths.home(ctx.settings)
    if home is None:
        raise UserError("there is no home directory", hint="`--project`, or `--root DIR`")
    return home


def each(opts: Options, ctx: Context, do: Callable[[Copy], bool]) -> int:
    """Do something to every copy, tell how all stand then, and return the gravest code."""
    items, codes = [], []
    for agent, copy in copies(opts, ctx).items():
        status, error = "noop", None
        try:
            status = "ok" if do(copy) else "noop"
        except AjError as caught:
            status, error = "failed", caught
            ctx.screen.trouble(f"{agent}: {caught.message}", caught.hint)
            codes.append(caught.exit_code)
        now = skills.look(copy.folder, packaged())
        items.append(view.item(agent, now, status, skills.failed(error) if error else None))
    ctx.screen.show(view.copies(items))
    return gravest(codes)
