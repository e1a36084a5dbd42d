"""The code that would travel: how much, by which rules, and why a path is in it or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import text, units
from aj.pack.selection import Kind, shown
from aj.view import schema
from aj.view.document import Column, Form, result, single

if TYPE_CHECKING:
    from aj.model.json import Json
    from aj.pack.explain import Explanation
    from aj.pack.selection import Selection
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.messages import Archive

SHOWN_TOP = 20  # names left out of the root that a person reads; JSON has all


def stats(
    selection: Selection, digest: str | None, *, top: int, all_files: bool, explained: Sequence[Item]
) -> Document:
    """Make the document of a selection; with `all_files` every entry is listed."""
    largest = [_file(member.shown, member.size) for member in selection.largest(top)]
    items = members(selection) if all_files else []
    item: dict[str, Json] = {
        "root": selection.plan.root,
        "digest": digest,
        "files": selection.files,
        "bytes": selection.bytes,
        "links": selection.links,
        "folders": selection.folders,
        "ignore_file": selection.ignore_file,
        "patterns": selection.patterns,
        "ignored": selection.excluded_top,
        "largest": tuple(largest),
        "items": tuple(items),
        "explain": tuple(explained),
    }
    return single("code.stats", item, text=_text(item, explained))


def members(selection: Selection) -> list[Item]:
    """Return every selected entry but the folders on the way."""
    found = (selection.member(index) for index in range(len(selection.paths)))
    return [
        {"path": member.shown, "kind": member.kind.value, "size_bytes": member.size if not member.target else None,
         "target": shown(member.target) if member.target else None}
        for member in found
        if member.kind is not Kind.FOLDER
    ]  # fmt: skip


def added(found: Mapping[bytes, tuple[bytes, int]]) -> list[Item]:
    """Return files that go along and are no part of the tree: each one's content and mode, by its path."""
    rows = ((shown(path), len(data)) for path, (data, _) in sorted(found.items()))
    return [{"path": path, "kind": Kind.FILE.value, "size_bytes": size, "target": None} for path, size in rows]


def _file(path: str, size: int) -> Item:
    return {"path": path, "size_bytes": size}


def explanation(found: Explanation, *, exists: bool) -> Item:
    """Return a verdict as JSON values; a path that is not there has one too."""
    return {
        "path": found.path,
        "exists": exists,
        "verdict": "included" if found.included else "excluded",
        "source": found.source,
        "line": found.line,
        "pattern": found.pattern,
        "folder": found.folder,
    }


def explained_line(found: Item) -> str:
    """Write a verdict as a line: path, verdict, and what decided."""
    verdict = f"{found['path']}: " + ("" if found["exists"] else "no such path; ") + str(found["verdict"])
    if found["pattern"] is None:
        return f"{verdict} ({found['source']})"
    where = f"{found['source']}:{found['line']}" if found["line"] else found["source"]
    above = f", for the folder `{found['folder']}`" if found["folder"] else ""
    return f"{verdict} by `{found['pattern']}` ({where}{above})"


def _text(item: Mapping[str, Json], explained: Sequence[Item]) -> str:
    if explained:
        return "\n".join(explained_line(found) for found in explained)
    files, size, links = int(str(item["files"])), int(str(item["bytes"])), int(str(item["links"]))
    rows = [
        ("root", str(item["root"])),
        ("files", f"{files} ({units.size(size)})" + (f", {text.plural(links, 'link')}" if links else "")),
        ("digest", str(item["digest"] or "none: no files are selected")),
        ("ignore file", str(item["ignore_file"] or "none")),
        ("patterns", str(item["patterns"])),
        ("left out", _some(item["ignored"])),
    ]
    lines = [f"{name:12} {value}" for name, value in rows]
    lines += _listed("largest", item["largest"])
    return "\n".join([*lines, *_listed("all", item["items"])])


def _some(names: Json) -> str:
    found = [str(name) for name in names] if isinstance(names, Iterable) else []
    more = f" and {len(found) - SHOWN_TOP} more" if len(found) > SHOWN_TOP else ""
    return ", ".join(found[:SHOWN_TOP]) + more or "nothing in the root"


def _listed(title: str, items: Json) -> list[str]:
    rows = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list | tuple) else []
    if not rows:
        return []
    sizes = [units.size(int(str(row["size_bytes"] or 0))) for row in rows]
    room = max(len(size) for size in sizes)
    return ["", f"{title}:", *(f"  {size:>{room}}  {row['path']}" for size, row in zip(sizes, rows, strict=True))]


def pruned(archives: Sequence[Archive], *, is_dry: bool) -> Document:
    """Make the document of archives that were removed, or would be; then its status is noop."""
    items: list[Item] = [{"digest": one.digest, "bytes": one.bytes} for one in archives]
    extra: Item = {"dry_run": is_dry, "bytes": sum(one.bytes for one in archives)}
    columns = (Column("digest", form=Form.ID), Column("size", "bytes", Form.SIZE))
    status = "noop" if is_dry or not items else "ok"
    words = None if items else "nothing to remove"
    return result("prune", items, columns, status=status, text=words, ids="digest", extra=extra)


def pruned_text(archives: Sequence[Archive], *, is_dry: bool) -> str:
    """Write how much it is together."""
    total = units.size(sum(one.bytes for one in archives))
    return f"{text.plural(len(archives), 'archive')}, {total}: {'would go' if is_dry else 'removed'}"


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    maybe_text, maybe_whole = schema.maybe(schema.TEXT), schema.maybe(schema.WHOLE)
    member = schema.record(path=schema.TEXT, kind=schema.TEXT, size_bytes=maybe_whole, target=maybe_text)
    verdict = schema.record(
        path=schema.TEXT,
        exists=schema.YES_NO,
        verdict=schema.one_of("included", "excluded"),
        source=schema.TEXT,
        line=maybe_whole,
        pattern=maybe_text,
        folder=maybe_text,
    )
    item = schema.record(
        root=schema.TEXT,
        digest=maybe_text,
        files=schema.WHOLE,
        bytes=schema.WHOLE,
        links=schema.WHOLE,
        folders=schema.WHOLE,
        ignore_file=maybe_text,
        patterns=schema.WHOLE,
        ignored=schema.NAMES,
        largest=schema.many(schema.record(path=schema.TEXT, size_bytes=schema.WHOLE)),
        items=schema.many(member),
        explain=schema.many(verdict),
    )
    gone = schema.record(digest=schema.TEXT, bytes=schema.WHOLE)
    return {
        "code.stats": schema.single(item),
        "result/prune": schema.result(gone, dry_run=schema.YES_NO, bytes=schema.WHOLE),
    }
