"""The version as a line and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema
from aj.view.document import Document

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema


def document(version: str, *, build: str | None, python: str, platform: str, verbose: bool) -> Document:
    """Make the document of the version; its text is one line, or four when verbose."""
    item: Item = {"version": version, "build": build, "python": python, "platform": platform}
    lines = [f"aj {version}"]
    if verbose:
        lines += [f"build {build or 'installed package'}", f"python {python}", f"platform {platform}"]
    return Document("version", {"item": item}, text="\n".join(lines))


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    return {
        "version": schema.single(
            schema.record(
                version=schema.TEXT, build=schema.maybe(schema.TEXT), python=schema.TEXT, platform=schema.TEXT
            )
        )
    }
