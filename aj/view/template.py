"""Templates as rows, as resolved YAML, and with the origin of every value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import paths, text
from aj.base.errors import Place
from aj.template import dump
from aj.view import schema
from aj.view.document import Column, Document, Form, listing, single

if TYPE_CHECKING:
    from aj.model.json import Json
    from aj.template.check import Report
    from aj.template.issue import Issue
    from aj.template.load import Entry, Resolved
    from aj.template.origin import Origin
    from aj.view.document import Item
    from aj.view.schema import Schema

COLUMNS = (
    Column("name", form=Form.ID),
    Column("kind", form=Form.STATE),
    Column("base", "bases"),
    Column("service"),
    Column("nodes", form=Form.NUMBER),
    Column("processes", form=Form.NUMBER),
    Column("sku"),
    Column("default"),
    Column("error", "error.message", flexible=True),
)
ORIGIN_COLUMNS = (
    Column("path", form=Form.ID),
    Column("value", "value_text", flexible=True),
    Column("place", form=Form.ID),
    Column("rule"),
    Column("hides", "hidden"),
)


def row(entry: Entry, default: str | None) -> Item:
    """Return a template as JSON values; `default` is the template that is taken without `-t`."""
    return {
        "name": entry.name,
        "path": str(entry.path),
        "kind": entry.kind,
        "bases": entry.bases,
        "service": entry.service,
        "nodes": entry.nodes,
        "processes": entry.processes,
        "sku": entry.sku,
        "default": entry.name == default,
        "error": entry.error.json() if entry.error else None,
    }


def entries(found: Sequence[Entry], default: str | None) -> Document:
    """Make the list of templates."""
    return listing("template.list", [row(entry, default) for entry in found], COLUMNS, noun="templates", ids="name")


def resolved(template: Resolved, here: Path) -> Document:
    """Make the document of a resolved template: YAML with the chain of its files as a comment on top."""
    chain = [f"# {link.name}: {paths.shown(link.path, here)}" for link in template.chain]
    config = template.config()
    words = "\n".join([*chain, dump.dump({"config": config})])
    return single("template", _item(template, config, None), text=words)


def raw(template_name: str, path: Path, words: str) -> Document:
    """Make the document of a file's own text."""
    item: Item = {"name": template_name, "path": str(path), "chain": (), "config": None, "origin": None, "text": words}
    return single("template", item, text=words)


def origins(template: Resolved, found: Mapping[str, Origin], values: Mapping[str, Json], here: Path) -> Document:
    """Make the table of values with the place that set each, the rule, and what it hides."""
    rows: list[Item] = [
        {
            "path": path,
            "value_text": values.get(path),
            "place": shown_place(origin.place, here),
            "rule": origin.rule.value,
            "hidden": tuple(shown_place(place, here) for place in origin.hidden),
        }
        for path, origin in found.items()
    ]
    item = _item(template, template.config(), {path: origin.json() for path, origin in found.items()})
    return Document("template", {"item": item}, rows=rows, columns=ORIGIN_COLUMNS)


def _item(template: Resolved, config: Mapping[str, Json], origin: Mapping[str, Json] | None) -> Item:
    chain = tuple({"name": link.name, "path": str(link.path)} for link in template.chain)
    return {
        "name": template.name,
        "path": str(template.path),
        "chain": chain,
        "config": config,
        "origin": origin,
        "text": None,
    }


def shown_place(place: Place, here: Path) -> str:
    """Write a place relative to the invocation directory when it lies below it."""
    return str(Place(paths.shown(place.file, here), place.line, place.column))


def validation(reports: Sequence[Report], here: Path, *, strict: bool) -> Document:
    """Make the findings about templates; a template is valid without errors, or without warnings when strict."""
    items: list[Item] = []
    lines: list[str] = []
    for report in reports:
        fine = report.is_clean if strict else report.ok
        issues = tuple(issue.json() for issue in report.issues)
        items.append({"name": report.name, "path": str(report.path), "kind": report.kind, "ok": fine, "issues": issues})
        lines.append(", ".join([f"{report.name}: {'ok' if fine else 'not valid'}", *_counts(report)]))
        lines += [line for issue in report.issues for line in _issue_lines(issue, here)]
    valid = sum(bool(item["ok"]) for item in items)
    body: Item = {"valid": valid, "invalid": len(items) - valid, "items": tuple(items)}
    return Document("template.validation", body, rows=items, text="\n".join(lines), empty="no templates")


def _counts(report: Report) -> list[str]:
    """Count errors and warnings in words, where there are any."""
    counts = Counter(issue.level.value for issue in report.issues)
    return [text.plural(counts[level], level) for level in ("error", "warning") if counts[level]]


def _issue_lines(issue: Issue, here: Path) -> list[str]:
    place = f"{shown_place(issue.place, here)}: " if issue.place else ""
    path = f"{issue.path}: " if issue.path else ""
    lines = [f"  {place}{issue.level.value}: {path}{issue.message}"]
    return [*lines, f"    hint: {issue.hint}"] if issue.hint else lines


def difference(one: Resolved, other: Resolved) -> Document:
    """Make the unified difference of two resolved templates; empty when they say the same."""
    import difflib  # 3 ms, only here

    texts = [dump.dump({"config": template.config()}).splitlines(keepends=True) for template in (one, other)]
    diff = "".join(difflib.unified_diff(texts[0], texts[1], one.name, other.name))
    item: Item = {"names": (one.name, other.name), "has_changes": bool(diff), "files": (), "diff": diff}
    return Document("template.diff", {"item": item}, text=diff, empty="no difference")


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    maybe_text, maybe_whole = schema.maybe(schema.TEXT), schema.maybe(schema.WHOLE)
    issue = schema.record(
        level=schema.one_of("error", "warning", "note"),
        code=schema.TEXT,
        file=maybe_text,
        line=maybe_whole,
        column=maybe_whole,
        path=schema.TEXT,
        message=schema.TEXT,
        hint=maybe_text,
    )
    entry = schema.record(
        name=schema.TEXT,
        path=schema.TEXT,
        kind=schema.one_of("leaf", "component", "broken"),
        bases=schema.NAMES,
        service=maybe_text,
        nodes=maybe_whole,
        processes=maybe_whole,
        sku=maybe_text,
        default=schema.YES_NO,
        error=schema.maybe(issue),
    )
    origin = schema.record(
        file=schema.TEXT, line=schema.WHOLE, column=schema.WHOLE, rule=schema.TEXT, hidden=schema.NAMES
    )
    shown = schema.record(
        name=schema.TEXT,
        path=schema.TEXT,
        chain=schema.many(schema.record(name=schema.TEXT, path=schema.TEXT)),
        config=schema.maybe(schema.table(schema.ANY)),
        origin=schema.maybe(schema.table(origin)),
        text=maybe_text,
    )
    finding = schema.record(
        name=schema.TEXT, path=schema.TEXT, kind=schema.TEXT, ok=schema.YES_NO, issues=schema.many(issue)
    )
    return {
        "template.list": schema.listing(entry),
        "template": schema.single(shown),
        "template.validation": schema.record(valid=schema.WHOLE, invalid=schema.WHOLE, items=schema.many(finding)),
        "template.diff": schema.single(
            schema.record(names=schema.NAMES, has_changes=schema.YES_NO, files=schema.NAMES, diff=schema.TEXT)
        ),
    }
