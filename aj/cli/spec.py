"""From the words of `aj run` to a JobSpec: the template, the environment, names and sizes, all checked here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aj.backend import registry
from aj.backend.local import options as local
from aj.base.agents import Tag
from aj.base.errors import OptionError, Refused, TemplateError, UserError
from aj.base.noun import dataclass
from aj.cli import buckets
from aj.store.keys import EXPERIMENT
from aj.template import build, env, load
from aj.template.build import Request
from aj.template.load import Resolved
from aj.template.shape import Asked, Given

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.run import Options
    from aj.template.build import Built

GIT_LIMIT_S = 30.0  # `git status` of a very large tree on a slow disk


@dataclass(frozen=True)
class Recipe:
    """Everything that is read once, so that the JobSpec can be made again for another id."""

    opts: Options
    resolved: Resolved
    request: Request

    def built(self, aj_id: str | None = None) -> Built:
        """Make the JobSpec, for another id if one is given. Raises TemplateError, UserError or OptionError."""
        request = self.request if aj_id is None else replace(self.request, id=aj_id)
        try:
            built = build.build(self.resolved, request, options_of=registry.options)
        except TemplateError as error:
            raise _with_all(error, self.resolved) from None
        except UserError as error:
            raise _with_warnings(error, self.resolved) from None
        if self.opts.workspace is not None:
            built = _in_workspace(built, self.opts.workspace)
        if not registry.traits(built.spec.service).is_local:
            return built
        return replace(built, spec=replace(built.spec, umask=umask()))


def recipe(opts: Options, ctx: Context, aj_id: str) -> Recipe:
    """Read template, settings and environment. Raises NotFound, UserError, OptionError."""
    project = ctx.need_project()
    ctx.take_back_pull(project)
    resolved = load.Library(project).resolve(_template(opts, ctx))
    if opts.require_clean:
        _check_clean(ctx.directory)
    tag = Tag() if opts.dry_run else ctx.tag()
    request = Request(
        id=aj_id,
        directory=ctx.directory,
        argv=opts.command,
        project=project,
        name=ctx.settings.get("AJ_NAME"),
        experiment=_experiment(opts, ctx),
        asked=Asked(_given("-n", opts.nodes), _given("-p", opts.processes), _given("--ppn", opts.per_node)),
        env=env.pairs(opts.env, ctx.settings.env),
        env_file=env_files(opts.env_file, ctx.directory),
        caller=local.lent(ctx.settings.env, ctx.config.words("local.pass_env")),
        buckets=buckets.asked(opts),
        secrets=opts.secret,
        amlt=opts.amlt,
        start_timeout_s=opts.timeout_s,
        max_cost=opts.max_cost,
        max_bytes=ctx.config.number("code.max_bytes"),
        agent=tag.agent,
        session=tag.session,
        session_title=tag.title,
    )
    return Recipe(opts, resolved, request)


def draw_id() -> str:
    """Draw an AJ ID: 8 lower-case hex characters from the system's secure source."""
    return os.urandom(4).hex()


def tell_missing_file(built: Built, ctx: Context) -> None:
    """Warn when the script that was named directly does not travel."""
    from aj.pack import walk

    if built.file and not walk.explain(built.spec.code, [built.file])[0].included:
        ctx.screen.warn(f"{built.file} is not in the code archive", code="file-not-packed")


def _with_all(error: TemplateError, resolved: Resolved) -> TemplateError:
    """Return the error with everything else that is wrong with the template, so that it is mended in one go."""
    from aj.template import check, issue  # only on the way to an error

    found = [*issue.of_error(error), *check.check(resolved, options_of=registry.options)]
    return issue.fatal(issue.distinct(found))


def _with_warnings(error: UserError, resolved: Resolved) -> UserError:
    """Return an error about the words with what the template is warned of: that may be why."""
    from aj.template import check  # only on the way to an error

    found = check.check(resolved, options_of=registry.options)
    error.details.setdefault("issues", [one.json() for one in found])
    return error


def _in_workspace(built: Built, name: str) -> Built:
    """Put another workspace into the target. Raises OptionError where there is none to choose."""
    spec = built.spec
    if registry.traits(spec.service).driven:
        raise OptionError(f"--ws {name}: a job of `{spec.service}` has no workspace", hint="leave out `--ws`")
    target = spec.config.get("target")
    chosen = {**(target if isinstance(target, Mapping) else {}), "workspace_name": name}
    return replace(built, spec=replace(spec, config={**spec.config, "target": chosen}))


def umask() -> int:
    """Return this process's mask of file modes. Not for a process with other threads: it is unset for a moment."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def _given(option: str, text: str | None) -> Given | None:
    return None if text is None else Given(option, text)


def _template(opts: Options, ctx: Context) -> str:
    name = opts.template if opts.template is not None else ctx.default_template()
    if name is None:
        hint = ctx.missed("template", "`-t NAME`; `aj template list` shows them")
        raise UserError("no template is named", hint=hint, code="no-template")
    return name


def _experiment(opts: Options, ctx: Context) -> str | None:
    name = opts.experiment if opts.experiment is not None else ctx.config.text("experiment")
    if name is None:
        return None
    try:
        return str(EXPERIMENT.check(name))
    except ValueError:
        raise OptionError(f"--experiment {name}: it takes {EXPERIMENT.due}") from None


def env_files(files: tuple[str, ...], directory: Path) -> Mapping[str, str]:
    """Read files of variables, the later ones over the earlier. Raises OptionError naming the file."""
    found: dict[str, str] = {}
    for file in files:
        try:
            content = (directory / file).read_bytes()
        except OSError as error:
            hint = f"a file of `NAME=VALUE` lines, looked for in {directory}; `-e NAME=VALUE` sets one variable"
            raise OptionError(f"--env-file {file}: {error.strerror}", hint=hint) from error
        found |= env.file_pairs(content, file)
    return found


def _check_clean(directory: Path) -> None:
    """Refuse a tree that git calls changed. Raises Refused, UserError where git knows of no tree."""
    from aj.base import proc

    try:
        found = proc.run(["git", "status", "--porcelain"], cwd=directory, timeout_s=GIT_LIMIT_S)
    except (OSError, TimeoutError) as error:
        hint = "install git, or leave out `--require-clean`"
        raise UserError(f"--require-clean: git cannot be asked: {error}", hint=hint) from error
    if found.code:
        said = found.err.decode("utf-8", "replace").strip().partition("\n")[0]
        hint = "run it inside a git repository, or leave out `--require-clean`"
        raise UserError(f"--require-clean: git says: {said}", hint=hint)
    changed = found.out.decode("utf-8", "replace").splitlines()
    if changed:
        names = ", ".join(line[3:] for line in changed[:5])
        raise Refused(
            f"the git tree is not clean: {names}", hint="commit, or leave out `--require-clean`", code="dirty"
        )
