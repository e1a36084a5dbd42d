"""Which files make up a template: names, bases, the order in which they merge, and the limits on all that.

A name without a dot is a file beside the one that names it; with a dot, the text before the first dot is a
folder of the project directory and the rest the file. Every file is read and merged once, however often it is
used, and what it costs is counted at each use.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import field
from functools import cached_property
from pathlib import Path

from aj.base import text
from aj.base.errors import AjError, NotFound, Place, TemplateError, UserError
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.model.json import Json
from aj.template import issue, merge, origin, source, tree, yaml
from aj.template.issue import Issue
from aj.template.origin import Origin
from aj.template.source import SUFFIX, TEMPLATES, Base, Link, Source
from aj.template.tree import EMPTY, Items, Scalar, Section, Value

MAX_DEPTH = 64  # nobody reads a longer chain; it also bounds the recursion here
TOO_DEEP = "too-deep"


@dataclass(frozen=True)
class Layer:
    """A file with all its bases merged below it, marks still in place."""

    config: Section
    chain: tuple[Link, ...]
    nodes: int
    depth: int
    issues: tuple[Issue, ...]


@dataclass(frozen=True)
class Resolved:
    """A template after inheritance. `chain` is every use of every file, in merge order."""

    name: str
    path: Path
    source: Source
    chain: tuple[Link, ...]
    tree: Section
    warnings: tuple[Issue, ...]

    @cached_property
    def origins(self) -> dict[str, Origin]:
        """The origin of every value, by its path."""
        return origin.table(self.tree)

    def config(self) -> dict[str, Json]:
        """Return the merged `config` without places, made afresh at each call."""
        return tree.mapping(self.tree)


@dataclass(frozen=True)
class Entry:
    """A row of the list of templates. `kind` is leaf, component or broken; a broken one says why."""

    name: str
    path: Path
    kind: str
    bases: tuple[str, ...] = ()
    service: str | None = None
    nodes: int | None = None
    processes: int | None = None
    sku: str | None = None
    error: Issue | None = None


def names(project: Project) -> list[Entry]:
    """List the templates of a project by name; a broken file is a row and hides no other."""
    return Library(project).entries()


def resolve(project: Project, name: str) -> Resolved:
    """Merge a template with its bases. Raises NotFound, UserError on a name no file can have, TemplateError."""
    return Library(project).resolve(name)


@dataclass
class Library:
    """The files of one project, each read and merged at most once. Lives as long as one command."""

    project: Project
    _sources: dict[Path, Source | AjError] = field(default_factory=dict)
    _layers: dict[Path, Layer | AjError] = field(default_factory=dict)

    def entries(self) -> list[Entry]:
        """List the templates by name."""
        return [self._entry(link) for link in self.templates()]

    def templates(self) -> list[Link]:
        """List the files of the template folder."""
        return [Link(path.name.removesuffix(SUFFIX), path) for path in source.found_in(self._folder(TEMPLATES))]

    def components(self) -> list[Link]:
        """List the files of the other folders, as bases name them."""
        folders = [folder for folder in self._folders() if folder.name != TEMPLATES]
        return [Link(source.name_of(path), path) for folder in folders for path in source.found_in(folder)]

    def strays(self) -> list[Path]:
        """List files that look like templates and are never read."""
        return sorted(path for folder in self._folders() for path in folder.glob("*.yml"))

    def find(self, name: str) -> Link:
        """Find a template, or a component by its dotted name. Raises NotFound or UserError."""
        if not source.is_name(name):
            raise UserError(f"`{name}` cannot be the name of a template", hint=f"a name is {source.NAME_FORM}")
        path = self._folder(TEMPLATES) / f"{name}{SUFFIX}"
        if os.path.lexists(path):
            return Link(name, path)
        folder, dot, rest = name.partition(".")
        component = self._folder(folder) / f"{rest}{SUFFIX}"
        if dot and source.is_folder(folder) and source.is_name(rest) and component.is_file():
            return Link(name, component)
        raise self._not_found(name)

    def resolve(self, name: str) -> Resolved:
        """Merge a template with its bases. Raises NotFound, UserError or TemplateError."""
        return self.resolved(self.find(name))

    def resolved(self, link: Link) -> Resolved:
        """Merge a file that was found. Raises TemplateError."""
        layer = self._layer(link, ())
        notes: list[Issue] = []
        config = merge.finished(layer.config, notes)
        file = self.source(link)
        issues = issue.distinct((*layer.issues, *notes, *_twice(layer.chain, file)))
        return Resolved(link.name, link.path, file, layer.chain, config, tuple(issues))

    def source(self, link: Link) -> Source:
        """Read one file, once. Raises TemplateError."""
        real = _real(link.path)
        if real not in self._sources:
            try:
                self._sources[real] = source.read(link)
            except AjError as error:
                self._sources[real] = error
        found = self._sources[real]
        if isinstance(found, AjError):
            raise found
        return found

    def _layer(self, link: Link, above: tuple[Path, ...]) -> Layer:
        """Merge a file with its bases, once. `above` are the files that led here, by their real paths."""
        real = _real(link.path)
        known = self._layers.get(real)
        if known is None:
            try:
                known = self._merged(link, (*above, real))
            except AjError as error:
                if error.code == TOO_DEEP:
                    raise  # seen from another file it may be well
                known = error
            self._layers[real] = known
        if isinstance(known, AjError):
            raise known
        if len(above) + known.depth > MAX_DEPTH:
            raise _too_deep(link)
        return known

    def _merged(self, link: Link, above: tuple[Path, ...]) -> Layer:
        """Merge a file's bases from left to right, and the file last."""
        if len(above) > MAX_DEPTH:
            raise _too_deep(link)
        file = self.source(link)
        issue.stop_at_errors(file.issues)
        config, nodes, depth = EMPTY, file.nodes, 0
        chain: list[Link] = []
        issues: list[Issue] = []
        for base in file.bases:
            found = self._base(base, link)
            if _real(found.path) in above:
                raise _circle(above, _real(found.path), base.place)
            layer = self._layer(found, above)
            nodes, depth = nodes + layer.nodes, max(depth, layer.depth)
            _check_size(nodes, base.place)
            config = merge.merge(config, layer.config, issues)
            chain += layer.chain
            issues += layer.issues
        if file.config is not None:
            config = merge.merge(config, file.config, issues)
        return Layer(config, (*chain, link), nodes, depth + 1, tuple(issue.distinct((*issues, *file.issues))))

    def _base(self, base: Base, referrer: Link) -> Link:
        """Find the file that a base names. Raises TemplateError at the place of the name."""
        folder, dot, rest = base.name.partition(".")
        where = self._folder(folder) if dot else referrer.path.parent
        path = where / f"{rest if dot else base.name}{SUFFIX}"
        if path.is_file():
            return Link(base.name if dot else source.name_of(path), path)
        known = self._dotted() if dot else _stems(where)
        near = text.nearest(base.name, known)
        message = f"the base `{base.name}` does not exist: {os.path.relpath(path, self.project.root)}"
        raise TemplateError(message, place=base.place, hint=f"`{near}` is the nearest name" if near else None)

    def _dotted(self) -> list[str]:
        """All files by their full names."""
        folders = [link.name for link in self.components()]
        return folders + [f"{TEMPLATES}.{stem}" for stem in _stems(self._folder(TEMPLATES))]

    def _entry(self, link: Link) -> Entry:
        try:
            if not source.is_name(link.name):
                raise TemplateError(f"`{link.name}` cannot be the name of a template", place=Place(str(link.path)))
            return _row(self.resolved(link))
        except AjError as error:
            return Entry(link.name, link.path, "broken", error=issue.of_error(error)[0])

    def _not_found(self, name: str) -> NotFound:
        known = _stems(self._folder(TEMPLATES))
        near = text.nearest(name, known)
        hint = f"`aj template list` shows {len(known)}" + (f"; `{near}` is the nearest name" if near else "")
        return NotFound(f"no template called `{name}`", hint=hint)

    def _folder(self, name: str) -> Path:
        return self.project.directory / name

    def _folders(self) -> list[Path]:
        """Folders whose files may be layers."""
        try:
            found = sorted(self.project.directory.iterdir())
        except OSError:
            return []
        return [path for path in found if source.is_folder(path.name) and path.is_dir()]


def _stems(folder: Path) -> list[str]:
    return [path.name.removesuffix(SUFFIX) for path in source.found_in(folder)]


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _circle(above: tuple[Path, ...], again: Path, place: Place) -> TemplateError:
    circle = " -> ".join(source.name_of(path) for path in (*above[above.index(again) :], again))
    hint = f"take `{source.name_of(again)}` out of the `base` here, or put what both need into a file of its own"
    return TemplateError(f"the bases go round in a circle: {circle}", place=place, hint=hint)


def _too_deep(link: Link) -> TemplateError:
    message = f"more than {MAX_DEPTH} files inherit from each other, the limit"
    return TemplateError(message, place=Place(str(link.path)), code=TOO_DEEP)


def _check_size(nodes: int, place: Place) -> None:
    if nodes > yaml.MAX_NODES:
        message = f"with this base more than {yaml.MAX_NODES} values come together, the limit"
        raise TemplateError(message, place=place)


def _twice(chain: tuple[Link, ...], file: Source) -> list[Issue]:
    """Warn of files that are merged more than once."""
    uses = Counter(link.path for link in chain)
    doubled = {link.path: link.name for link in chain if uses[link.path] > 1}
    place = file.bases[-1].place if file.bases else file.place
    return [
        issue.warning(
            f"`{name}` is merged {uses[path]} times here, so its lists are joined as often",
            place,
            hint="name it in one of the bases only",
            code="diamond",
        )
        for path, name in doubled.items()
    ]


def _row(resolved: Resolved) -> Entry:
    target = resolved.tree.given("target")
    jobs = resolved.tree.given("jobs")
    job = jobs.items[0] if isinstance(jobs, Items) and jobs.items else None
    return Entry(
        resolved.name,
        resolved.path,
        "leaf" if resolved.source.is_leaf else "component",
        tuple(base.name for base in resolved.source.bases),
        service=_text(_scalar(target, "service")),
        nodes=_whole(_scalar(job, "instance_count")),
        processes=_whole(_scalar(target, "gpus_per_node")),
        sku=_sku(job),
    )


def _sku(job: Value | None) -> str | None:
    """Write the SKU of a row: its text, or its ranges in one line."""
    sku = job.given("sku") if isinstance(job, Section) else None
    if isinstance(sku, Section):
        return ", ".join(f"{key}: {item.raw}" for key, item in sku.entries.items() if isinstance(item, Scalar))
    return _text(_scalar(job, "sku"))


def _scalar(section: Value | None, key: str) -> Scalar | None:
    node = section.given(key) if isinstance(section, Section) else None
    return node if isinstance(node, Scalar) else None


def _text(node: Scalar | None) -> str | None:
    return node.raw if node else None


def _whole(node: Scalar | None) -> int | None:
    return node.value if node and isinstance(node.value, int) and not isinstance(node.value, bool) else None
