"""Shared files that were pulled or pushed, and how a repository differs from a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.view import schema
from aj.view.document import Column, Document, Form, result

if TYPE_CHECKING:
    from aj.template.exchange import Change
    from aj.view.document import Item
    from aj.view.schema import Schema

COLUMNS = (Column("path", form=Form.ID), Column("change", form=Form.STATE), Column("kept as", "kept"))


def done(
    action: str,
    changes: Sequence[Change],
    repository: str,
    commit: str | None,
    *,
    kept: Mapping[str, Path] | None = None,
    is_dry: bool = False,
) -> Document:
    """Make the document of a pull or a push; nothing changed is `noop`."""
    items: list[Item] = [
        {
            "path": change.path,
            "change": change.kind.value,
            "kept": str(kept[change.path]) if kept and change.path in kept else None,
        }
        for change in changes
    ]
    extra: Item = {"repository": repository, "commit": commit, "dry_run": is_dry}
    status = "ok" if items and not is_dry else "noop"
    text = None if items else f"nothing to {action}: the files are those of {repository}"
    return result(action, items, COLUMNS, status=status, text=text, extra=extra)


def difference(paths: Sequence[str], words: str, repository: str) -> Document:
    """Make the unified difference of repository and project; empty when they are the same."""
    item: Item = {
        "names": (repository, "local"),
        "has_changes": bool(paths),
        "files": tuple(paths),
        "diff": words,
    }
    return Document("template.diff", {"item": item}, text=words, empty="no difference")


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    row = schema.record(
        path=schema.TEXT, change=schema.one_of("added", "updated", "deleted"), kept=schema.maybe(schema.TEXT)
    )
    moved = schema.result(row, repository=schema.TEXT, commit=schema.maybe(schema.TEXT), dry_run=schema.YES_NO)
    return {"result/pull": moved, "result/push": moved}
