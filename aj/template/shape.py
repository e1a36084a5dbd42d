"""How many nodes and processes, and which SKU: from the command line first, then from the template."""

from __future__ import annotations

from collections.abc import Sequence

from aj.base import units
from aj.base.errors import OptionError, UserError
from aj.base.noun import dataclass
from aj.model import sku as skus
from aj.model.job import Shape, Task
from aj.model.sku import Range, Sku, SkuProblem
from aj.template import issue, sections, tree
from aj.template.issue import Issue
from aj.template.reader import Reader
from aj.template.schema import MAX_NODES, MAX_PROCESSES
from aj.template.service import Facts, SkuRule
from aj.template.tree import Scalar, Section


@dataclass(frozen=True)
class Given:
    """A count as it was typed: the option's spelling and the text after it."""

    option: str
    text: str

    def number(self, low: int, high: int) -> int:
        """Read the count. Raises OptionError naming option and range."""
        try:
            found = units.parse_whole(self.text)
        except ValueError:
            found = -1
        if not low <= found <= high:
            raise OptionError(f"{self.option} {self.text}: a whole number from {low} to {high} is due")
        return found


@dataclass(frozen=True)
class Asked:
    """The counts of the command line, each None when its option was not given."""

    nodes: Given | None = None
    processes: Given | None = None
    per_node: Given | None = None

    def all(self) -> list[Given]:
        """Return the options that were given."""
        return [given for given in (self.nodes, self.processes, self.per_node) if given is not None]


@dataclass(frozen=True)
class Decided:
    """The shape that holds, and the SKU with its numbers filled in (None where no SKU is looked at)."""

    shape: Shape
    sku: str | None
    warnings: tuple[Issue, ...] = ()


def decide(config: Section, facts: Facts, asked: Asked) -> Decided:
    """Settle nodes, processes and SKU. Raises UserError naming every missing value, OptionError, TemplateError."""
    reader, job = sections.config(config)
    if facts.tasks:
        return _of_tasks(job, facts.tasks, asked)
    nodes, processes = _counts(reader, job, facts, asked)
    per_node = asked.per_node.number(1, MAX_PROCESSES) if asked.per_node else _written_per_node(job) or 1
    issue.stop_at_errors(reader.issues)
    text, sku = _sku(job, facts, nodes, processes)
    issue.stop_at_errors(reader.issues)
    if sku is not None and text is not None:
        if sku.is_gpu and processes == 0 and not facts.zero_gpus:
            raise UserError(f"the SKU {text} asks for GPUs, and there are 0 SKU processes", hint="-p N")
        if not sku.is_gpu and not facts.cpu_sizes and asked.processes is not None:
            job.warn("sku", f"a C SKU has no sizes here: {asked.processes.option} has no effect")
        text = skus.fitted(text, sku, nodes=nodes, count=processes)
    gpus = processes if sku is None or sku.is_gpu else 0
    return Decided(Shape(nodes, processes, per_node, gpus), text, tuple(reader.issues))


def check(config: Section, facts: Facts) -> list[Issue]:
    """Find what is wrong with the SKU, and note what only the command line can give."""
    reader, job = sections.config(config)
    if facts.tasks:
        _check_total(job, facts.tasks)
        return reader.issues
    nodes, processes = _written_nodes(job), _written_processes(reader, facts)
    missing = [key for key, value in _missing(nodes, processes) if value is None]
    if missing:
        reader.issues.append(issue.note(f"not given here: {', '.join(missing)}", job.node.place))
    node = None if facts.sku_rule is SkuRule.UNUSED else job.node.given("sku")
    if isinstance(node, Section):
        for span, text in _ranges(job, node):
            count = nodes if nodes is not None and span.holds(nodes) else span.low
            _read(job, text, facts, count, 1 if processes is None else processes)
    elif isinstance(node, Scalar) and isinstance(node.value, str):
        _read(job, node, facts, nodes or 1, 1 if processes is None else processes)
    return reader.issues


def _missing(nodes: int | None, processes: int | None) -> list[tuple[str, int | None]]:
    """The values that have no default, each with where it can be given."""
    return [
        ("nodes (`-n` or `jobs[0].instance_count`)", nodes),
        ("SKU processes (`-p` or `target.gpus_per_node`)", processes),
    ]


def _counts(reader: Reader, job: Reader, facts: Facts, asked: Asked) -> tuple[int, int]:
    nodes = asked.nodes.number(1, MAX_NODES) if asked.nodes else _written_nodes(job)
    processes = asked.processes.number(0, MAX_PROCESSES) if asked.processes else _written_processes(reader, facts)
    issue.stop_at_errors(reader.issues)
    missing = [key for key, value in _missing(nodes, processes) if value is None]
    if nodes is None or processes is None:
        ways = (("-n 1", "jobs[0].instance_count: 1", nodes), ("-p 8", "target.gpus_per_node: 8", processes))
        options = " ".join(option for option, _, value in ways if value is None)
        keys = " and ".join(f"`{key}`" for _, key, value in ways if value is None)
        hint = f"`{options}`, or {keys} in the template"
        raise UserError(f"missing: {' and '.join(missing)}", hint=hint, code="missing-shape")
    return nodes, processes


def _written_nodes(job: Reader) -> int | None:
    return job.whole("instance_count", 1, MAX_NODES)


def _written_per_node(job: Reader) -> int | None:
    return job.whole("process_count_per_node", 1, MAX_PROCESSES)


def _written_processes(reader: Reader, facts: Facts) -> int | None:
    written = reader.section("target").whole("gpus_per_node", 0, MAX_PROCESSES)
    return facts.sku_processes if written is None else written


def _of_tasks(job: Reader, tasks: Sequence[Task], asked: Asked) -> Decided:
    """Take the shape of roles that have their own; the command line may not speak of it."""
    if refused := asked.all():
        options = ", ".join(given.option for given in refused)
        raise OptionError(f"{options}: the Tasks of this template fix the shape", hint=f"leave out {options}")
    _check_total(job, tasks)
    issue.stop_at_errors(job.issues)
    nodes = sum(task.replicas for task in tasks)
    return Decided(Shape(nodes, 0, 1, 0), job.text("sku"), tuple(job.issues))


def _check_total(job: Reader, tasks: Sequence[Task]) -> None:
    total = sum(task.replicas for task in tasks)
    written = _written_nodes(job)
    if written is not None and written != total:
        job.warn("instance_count", f"`instance_count` is {written}; the Tasks have {total} replicas, which holds")


def _sku(job: Reader, facts: Facts, nodes: int, processes: int) -> tuple[str | None, Sku | None]:
    """Choose, fill in and read the SKU; None for what is not looked at or no SKU."""
    node = None if facts.sku_rule is SkuRule.UNUSED else job.node.given("sku")
    if isinstance(node, Section):
        node = _chosen(_ranges(job, node), nodes)
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return None, None
    return _read(job, node, facts, nodes, processes, tell_literals=True)


def _chosen(ranges: Sequence[tuple[Range, Scalar]], nodes: int) -> Scalar | None:
    """Take the SKU of the first range that holds the number of nodes. Raises UserError when none does."""
    spans = [span for span, _ in ranges]
    found = skus.choose(spans, nodes)
    if found is None and ranges:
        listed = ", ".join(f"`{span.text.strip()}`" for span in spans)
        raise UserError(f"no range of `jobs[0].sku` holds {nodes} nodes: {listed}", hint="-n N within one of them")
    return ranges[spans.index(found)][1] if found else None


def _ranges(job: Reader, node: Section) -> list[tuple[Range, Scalar]]:
    """Read a mapping from ranges of nodes to SKUs; overlaps are warnings."""
    section = job.section("sku")
    if not node.entries:
        job.wrong("sku", "`jobs[0].sku` is an empty mapping", hint='write {"1": G1, "2+": "{nodes}xG8"}')
    found: list[tuple[Range, Scalar]] = []
    for key, text in node.entries.items():
        try:
            span = skus.parse_range(key)
        except SkuProblem as problem:
            place = node.key_place(key)
            job.issues.append(issue.error(problem.message, place, path=section.at(key), hint=f"write {problem.near}"))
            continue
        if isinstance(text, Scalar) and section.text(key):
            found.append((span, text))
        elif not section.has(key) or isinstance(text, Scalar):
            section.wrong(key, f"the range `{key}` has no SKU", hint="write G1 or C1")
    for first, second in skus.overlaps([span for span, _ in found]):
        message = f"the ranges `{first.text}` and `{second.text}` overlap; the first holds where they do"
        job.issues.append(issue.warning(message, node.key_place(second.text), path=section.at(second.text)))
    return found


def _read(
    job: Reader, node: Scalar, facts: Facts, nodes: int, processes: int, *, tell_literals: bool = False
) -> tuple[str | None, Sku | None]:
    """Fill in and read one SKU; a fault is an error, or a warning where the service takes any text."""
    offsets: tuple[int, ...] = ()
    try:
        rendered = skus.render(node.raw, nodes=nodes, processes=processes)
        offsets = rendered.offsets
        sku = skus.parse(rendered.text, allow_zero=processes == 0)
    except SkuProblem as problem:
        filled = bool(offsets)
        at = rendered.source(problem.offset) if filled else problem.offset
        make = issue.warning if filled and facts.sku_rule is not SkuRule.STRICT else issue.error
        path = job.at("sku")
        job.issues.append(make(problem.message, tree.inside(node, at), path=path, hint=f"write {problem.near}"))
        return (rendered.text if filled else None), None
    if tell_literals:
        _tell_literals(job, node, sku, nodes, processes)
    return rendered.text, sku


def _tell_literals(job: Reader, node: Scalar, sku: Sku, nodes: int, processes: int) -> None:
    """Warn of numbers in a SKU that are not those that hold."""
    for what, written, holds in (("nodes", sku.nodes, nodes), ("SKU processes", sku.count, processes)):
        if written is not None and written != holds:
            message = f"`{node.raw}` says {written} {what}; {holds} holds"
            job.issues.append(issue.warning(message, node.place, path=job.at("sku"), code="sku-literal"))
