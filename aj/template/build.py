"""A template and a command line to one JobSpec, with nothing left to look up.

The order is fixed: check the template, read the words, settle shape and SKU, name the job, merge the
environment, plan the code. Whatever is wrong is told before anything is packed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import cast

from aj.base import paths
from aj.base.errors import OptionError, Place, TemplateError, UserError
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.base.settings import INJECTED
from aj.model import names, words
from aj.model.bucket import Buckets
from aj.model.code import CodePlan, IgnoreLine
from aj.model.job import JobSpec, Task
from aj.model.json import Json
from aj.model.names import NameStyle
from aj.model.words import Command
from aj.template import buckets, check, issue, script, sections, shape, tree, venv
from aj.template.issue import Issue
from aj.template.load import Resolved
from aj.template.reader import Reader
from aj.template.service import Facts, OptionsOf
from aj.template.shape import Asked, Decided
from aj.template.tree import Items, Scalar, Section

AMLT = "amlt"
# What a job finds in its environment is what `aj` says, whoever else set it.
OURS = INJECTED | {"AJ_NAME"}


@dataclass(frozen=True)
class Request:
    """What one command line asks for.

    `id` is the AJ ID; `directory` the invocation directory, absolute; `argv` the user's own words; `name` the
    value of AJ_NAME; `env` and `env_file` the pairs of the options; `caller` what the submitting shell lends to
    a job of this machine; without a template `config` holds what one would say, or only `service` is used; without
    `brings_code` the words are exactly those of an image, which may have its own; `amlt` hands the job to that program.
    """

    id: str
    directory: Path
    argv: tuple[str, ...]
    project: Project | None = None
    name: str | None = None
    experiment: str | None = None
    asked: Asked = field(default_factory=Asked)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    env_file: Mapping[str, str] = field(default_factory=dict, repr=False)
    caller: Mapping[str, str] = field(default_factory=dict, repr=False)
    service: str = "local"
    config: Mapping[str, Json] | None = field(default=None, repr=False)
    brings_code: bool = True
    max_runtime_s: float | None = None
    max_cost: int | None = None
    buckets: Buckets | None = None
    secrets: tuple[str, ...] = ()
    amlt: bool = False
    start_timeout_s: float | None = None
    max_bytes: int | None = None
    agent: str | None = None
    session: str | None = None
    session_title: str | None = None


@dataclass(frozen=True)
class Built:
    """A JobSpec, and what its user should know. `file` is the script named directly, if any."""

    spec: JobSpec
    warnings: tuple[Issue, ...] = ()
    file: str | None = None

    @property
    def line(self) -> str:
        """The user's words as a POSIX shell reads them."""
        return words.line(self.spec.argv) if self.spec.argv else ""


def build(resolved: Resolved | None, request: Request, *, options_of: OptionsOf) -> Built:
    """Make the JobSpec. Raises TemplateError with every issue found, UserError or OptionError on the words."""
    config = resolved.tree if resolved else tree.section_of(request.config or {"target": {"service": request.service}})
    issues = check.check(resolved, options_of=options_of) if resolved else []
    issue.stop_at_errors(issues)
    reader, job = sections.config(config)
    service = reader.section("target").text("service") or request.service
    facts = options_of(service)(config).facts
    _check_amlt(request, facts)
    decided = shape.decide(config, facts, request.asked)
    env = _env(job, request, facts)
    lent = venv.lent(_free(request.caller), env.job, request.directory) if facts.runs_here else venv.Lent({})
    path = {**lent.env, **env.job}.get("PATH", "") if facts.runs_here else None
    command = _command(request, facts, path)
    setup, lines = reader.section("environment").texts("setup"), job.lines("command")
    may_be_made = bool(setup or lines) or not request.brings_code
    is_of_image = not request.brings_code and not facts.runs_here  # whose words mean its own files
    asked = () if is_of_image else command.argv
    missing = script.check(asked, request.directory, path=path, may_be_made=may_be_made)
    notes = map(issue.note, (*lent.notes, *command.notes))
    warnings = [*issues, *decided.warnings, *env.told, *missing, *notes, *_unused(command, facts)]
    warnings += _unheard(reader) if request.amlt else []
    spec = JobSpec(
        id=request.id,
        name=_name(request, command, AMLT if request.amlt else service, facts, decided),
        service=AMLT if request.amlt else service,
        template=resolved.name if resolved else "",
        experiment=request.experiment,
        directory=str(request.directory),
        project=str(request.project.directory) if request.project else None,
        shape=decided.shape,
        argv=command.argv,
        code=_code(reader, request, facts),
        sku=decided.sku,
        image=facts.image,
        setup=setup,
        lines=lines,
        env=env.job,
        inherited=lent.env,
        tasks=env.tasks,
        config=plain_config(config),
        start_timeout_s=job.seconds("start_timeout") if request.start_timeout_s is None else request.start_timeout_s,
        buckets=_buckets(reader, request, facts),
        secrets=_secrets(job, request, facts),
        agent=request.agent,
        session=request.session,
        session_title=request.session_title,
        brings_code=request.brings_code,
        spot=reader.section("target").flag("spot") or False,
        max_runtime_s=job.seconds("timeout") if request.max_runtime_s is None else request.max_runtime_s,
        max_cost=_max_cost(job, request, facts),
    )
    return Built(spec, tuple(issue.distinct(warnings)), command.file)


def plain_config(config: Section) -> dict[str, Json]:
    """Return a merged `config` as plain values in which every environment value is its text as written."""
    found = tree.mapping(config)
    jobs = found.get("jobs")
    written = config.given("jobs")
    if isinstance(jobs, list) and isinstance(written, Items):
        for job, node in zip(jobs, written.items):
            arguments = job.get("submit_args") if isinstance(job, dict) else None
            if isinstance(arguments, dict) and isinstance(arguments.get("env"), dict) and isinstance(node, Section):
                env = Reader(node, []).section("submit_args").section("env").env()
                arguments["env"] = cast(dict[str, Json], env)
    return found


def _buckets(reader: Reader, request: Request, facts: Facts) -> Buckets | None:
    """Return what template and command line ask of buckets. Raises TemplateError, OptionError."""
    found = buckets.read(reader)
    issue.stop_at_errors(reader.issues)
    if facts.takes_buckets:
        return buckets.merged(found, request.buckets)
    if request.buckets is not None:
        raise OptionError("buckets are for jobs of this machine", hint="`service: local`, or leave out `--*-bucket`")
    if found is not None:
        raise issue.fatal([_not_here("storage_buckets", reader)])
    return None


def _secrets(job: Reader, request: Request, facts: Facts) -> tuple[str, ...]:
    """Return the names of the secrets that the job gets. Raises TemplateError, OptionError."""
    arguments = job.section("submit_args")
    found = tuple(dict.fromkeys((*arguments.texts("secrets"), *request.secrets)))
    if found and not facts.takes_buckets:
        if request.secrets:
            raise OptionError("secrets are for jobs of this machine", hint="`service: local`, or leave out `--secret`")
        raise issue.fatal([_not_here("secrets", arguments)])
    return found


def _max_cost(job: Reader, request: Request, facts: Facts) -> int | None:
    """Return what the job may cost, in millionths of a dollar. Raises TemplateError, OptionError."""
    found = job.dollars("max_cost")
    if facts.runs_here:
        return found if request.max_cost is None else request.max_cost
    if request.max_cost is not None:
        raise OptionError("`--max-cost` is for jobs of this machine", hint="`service: local`, or leave it out")
    if found is not None:
        raise issue.fatal([_not_here("max_cost", job)])
    return None


def _not_here(key: str, reader: Reader) -> Issue:
    hint = "write it in a template with `service: local`"
    return issue.error(f"`{key}` is for jobs of this machine", reader.place(key), path=reader.at(key), hint=hint)


def _check_amlt(request: Request, facts: Facts) -> None:
    """Refuse to hand to amlt what it cannot run."""
    if not request.amlt or not (facts.tasks or facts.runs_here):
        return
    what = "Tasks" if facts.tasks else "jobs of this machine"
    raise OptionError(f"--amlt: amlt does not know {what}", hint="leave out --amlt")


def _unheard(reader: Reader) -> list[Issue]:
    """Warn of what the template says of code and amlt does not hear."""
    code = reader.section("code")
    if not code.texts("ignore"):
        return []
    return [issue.warning(sections.AMLT_CHOOSES, code.place("ignore"), path=code.at("ignore"))]


def _command(request: Request, facts: Facts, path: str | None) -> Command:
    """Read the words of the command line; none are needed when every Task brings its own.

    `path` is the PATH of a job of this machine.
    """
    if not request.brings_code and (request.argv or not facts.runs_here):
        return Command(request.argv)
    if not request.argv and facts.tasks and all(task.lines for task in facts.tasks):
        return Command(())
    if not request.argv and (waiting := [task.name for task in facts.tasks if not task.lines]):
        raise UserError(f"COMMAND is missing, and the Task `{waiting[0]}` has no `command` of its own")
    return words.command(
        request.argv,
        str(request.directory),
        is_file=os.path.isfile,
        resolve=os.path.realpath,
        has_uv=path is None or script.is_found("uv", path),
    )


def _unused(command: Command, facts: Facts) -> list[Issue]:
    """Warn of words that no Task will run."""
    if not command.argv or not facts.tasks or not all(task.lines for task in facts.tasks):
        return []
    return [issue.warning("every Task has a `command` of its own: the words after the options are not used")]


def _name(request: Request, command: Command, service: str, facts: Facts, decided: Decided) -> str:
    """Name the job as its place wants it. Raises TemplateError naming a Task whose name leaves no room."""
    base = names.base(request.name, request.directory.name, command.stem)
    if facts.name_style is NameStyle.PLAIN or service == AMLT:
        return names.plain(base, request.id)
    nodes = decided.shape.nodes
    gang = {"master": 1, **({"worker": nodes - 1} if nodes > 1 else {})}
    limit, task = names.stem_limit({one.name: one.replicas for one in facts.tasks} or gang)
    if not names.has_room(limit):
        raise TemplateError(f"name too long: task {task} leaves no room for a job name", hint="shorten the task's name")
    return names.dns(base, request.id, limit=limit)


@dataclass(frozen=True)
class _Env:
    """The environment of the job, that of each Task, and what was taken out of them."""

    job: Mapping[str, str]
    tasks: tuple[Task, ...]
    told: list[Issue]


def _env(job: Reader, request: Request, facts: Facts) -> _Env:
    """Merge template, Task, file and options, in rising order, and keep the injected names out."""
    section = job.section("submit_args").section("env")
    written = section.env()
    options = {**request.env_file, **request.env}
    tasks = tuple(replace(task, env=_free({**written, **task.env, **options})) for task in facts.tasks)
    told = [_overridden(name, "the template", section) for name in sorted(OURS & written.keys())]
    told += [_overridden(name, "--env-file") for name in sorted(OURS & request.env_file.keys())]
    told += [_overridden(name, "-e") for name in sorted(OURS & request.env.keys())]
    return _Env(_free({**written, **options}), tasks, told)


def _free(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in OURS}


def _overridden(name: str, who: str, section: Reader | None = None) -> Issue:
    message = f"{who} sets {name}, which aj itself sets: the value of aj holds"
    place, path = (section.place(name), section.at(name)) if section else (None, "")
    return issue.warning(message, place, path=path, code="injected-env")


def _code(reader: Reader, request: Request, facts: Facts) -> CodePlan:
    """Plan the code: the invocation directory, the template's patterns, the project's scripts."""
    return CodePlan(
        root=str(request.directory),
        ignore=tuple(ignored(reader.node, request.directory)),
        scripts=_scripts(request),
        strict_links=not facts.runs_here,
        reserved=facts.reserves_runner,
        max_bytes=request.max_bytes,
        ssh=() if facts.runs_here else _ssh(reader.node),
        ssh_private_keys=_is_true(reader.node, "ssh_private_keys"),
    )


def _ssh(config: Section) -> tuple[str, ...]:
    """The files of `~/.ssh` that the template lists; what is wrong with them is told by the service's options."""
    code = config.given("code")
    node = code.given("ssh") if isinstance(code, Section) else None
    found = node.items if isinstance(node, Items) else ()
    return tuple(dict.fromkeys(item.raw for item in found if isinstance(item, Scalar)))


def _is_true(config: Section, key: str) -> bool:
    code = config.given("code")
    node = code.given(key) if isinstance(code, Section) else None
    return isinstance(node, Scalar) and node.value is True


def ignored(config: Section, start: Path) -> list[IgnoreLine]:
    """Return the patterns of `code.ignore` with their places, paths relative to `start` when below it."""
    code = config.given("code")
    node = code.given("ignore") if isinstance(code, Section) else None
    found = node.items if isinstance(node, Items) else ()
    return [IgnoreLine(item.raw, _spot(item.place, start)) for item in found if isinstance(item, Scalar)]


def _spot(place: Place, start: Path) -> str:
    return f"{paths.shown(place.file, start)}:{place.line}"


def _scripts(request: Request) -> str | None:
    """Return the project's scripts when they do not lie in the tree that is sent anyway."""
    if request.project is None or os.path.realpath(request.project.root) == os.path.realpath(request.directory):
        return None
    scripts = request.project.directory / "scripts"
    return str(scripts) if scripts.is_dir() else None
