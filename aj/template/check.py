"""Everything that can be found wrong with a template from its files alone, all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aj.base.errors import AjError, Place, UserError
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.template import issue, schema, shape
from aj.template.issue import Issue, Level
from aj.template.load import Library, Resolved
from aj.template.reader import Reader
from aj.template.service import Facts, OptionsOf
from aj.template.source import Link, Source
from aj.template.tree import Items, Scalar, Section

# What a hint shows can be written as it is, and a job of this machine needs no more.
LOCAL = "{service: local}"
JOBS = "jobs: [{name: train, instance_count: 1}]"


@dataclass(frozen=True)
class Report:
    """What was found in one file. `kind` is leaf, component, broken or stray."""

    name: str
    path: Path
    kind: str
    issues: tuple[Issue, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing in it stops a submission."""
        return not any(found.is_error for found in self.issues)

    @property
    def is_clean(self) -> bool:
        """Whether there is not even a warning."""
        return all(found.level is Level.NOTE for found in self.issues)


def check(resolved: Resolved, *, options_of: OptionsOf) -> list[Issue]:
    """Find all issues of a merged template: inheritance, kinds, needed keys, the service's options, the SKU."""
    source = resolved.source
    part = [] if source.is_leaf else [_only_a_part(source)]
    found = of_config(resolved.tree, source.place, options_of=options_of, slip=source.slip)
    return issue.distinct((*part, *resolved.warnings, *found))


def of_config(config: Section, place: Place, *, options_of: OptionsOf, slip: str | None = None) -> list[Issue]:
    """Find all issues of a merged `config`; `place` is where its file begins, `slip` why it may be empty."""
    if not config.entries:
        return [issue.error("`config` is empty", place, hint=slip or f"write `config: {{target: {LOCAL}, {JOBS}}}`")]
    reader = schema.check(config)
    service = _service(reader)
    _jobs(reader)
    facts = _facts(reader, service, options_of)
    if facts is not None:
        reader.issues.extend((*facts.warnings, *shape.check(config, facts)))
    return issue.distinct(reader.issues)


def validate(project: Project, names: Sequence[str] | None = None, *, options_of: OptionsOf) -> list[Report]:
    """Check the named templates, or every file of the project. Raises NotFound and UserError on names only."""
    library = Library(project)
    if names:
        return [_report(library, library.find(name), options_of, is_named=True) for name in names]
    links = [*library.templates(), *library.components()]
    return [*(_report(library, link, options_of) for link in links), *map(_stray, library.strays())]


def _report(library: Library, link: Link, options_of: OptionsOf, *, is_named: bool = False) -> Report:
    """Check one file; whatever is wrong with it stays in its own report."""
    try:
        source = library.source(link)
        if not source.is_leaf:
            told = [_only_a_part(source)] if is_named else []
            return Report(link.name, link.path, "component", (*told, *_component(source)))
        resolved = library.resolved(link)
    except AjError as error:
        return Report(link.name, link.path, "broken", tuple(issue.of_error(error)))
    return Report(link.name, link.path, "leaf", tuple(check(resolved, options_of=options_of)))


def _only_a_part(source: Source) -> Issue:
    message = f"{source.link.name} has no base key: it is a component"
    hint = "`aj run -t` is for files with `base:`, which may be empty"
    return issue.warning(message, source.place, hint=hint, code="component")


def _component(source: Source) -> list[Issue]:
    """Find what is wrong with a file that is only a part: its own faults, kinds and unknown keys."""
    found = schema.check(source.config).issues if source.config is not None else []
    return issue.distinct((*source.issues, *found))


def _stray(path: Path) -> Report:
    message = f"{path.name} is not read: templates end in .yaml"
    found = issue.warning(message, Place(str(path)), hint=f"mv {path.name} {path.stem}.yaml", code="stray-file")
    return Report(path.name, path, "stray", (found,))


def _service(reader: Reader) -> Scalar | None:
    """Find the service's name; a missing one is noted."""
    if not reader.has("target"):
        hint = f"write `target: {LOCAL}`"
        reader.issues.append(issue.error("`target` is missing", reader.node.place, path="target", hint=hint))
        return None
    target = reader.node.given("target")
    if not isinstance(target, Section):
        return None  # its kind has been told
    service = target.given("service")
    if service is None:
        Reader(target, reader.issues, "target").missing("service", "write `service: local`")
    return service if isinstance(service, Scalar) and isinstance(service.value, str) else None


def _jobs(reader: Reader) -> None:
    """Note a missing list of jobs, and entries that nobody will run."""
    jobs = reader.node.given("jobs")
    if jobs is None:
        reader.missing("jobs", f"write `{JOBS}`")
    elif isinstance(jobs, Items) and not jobs.items:
        reader.wrong("jobs", "`jobs` is an empty list", hint=f"write `{JOBS}`")
    elif isinstance(jobs, Items) and len(jobs.items) > 1:
        reader.warn("jobs", f"`jobs` has {len(jobs.items)} entries; the first is submitted", code="more-jobs")


def _facts(reader: Reader, service: Scalar | None, options_of: OptionsOf) -> Facts | None:
    """Ask the service's own options room; its faults are noted."""
    if service is None:
        return None
    try:
        parse = options_of(service.raw)
    except UserError as error:
        reader.issues.append(issue.error(error.message, service.place, path="target.service", hint=error.hint))
        return None
    try:
        return parse(reader.node).facts
    except UserError as error:
        reader.issues.extend(issue.of_error(error))
        return None
