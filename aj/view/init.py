"""A new project: what was written, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import paths
from aj.view import schema
from aj.view.document import result

if TYPE_CHECKING:
    from aj.view.document import Document
    from aj.view.schema import Schema


def made(directory: Path, written: Sequence[Path], following: Sequence[str], here: Path) -> Document:
    """Make the document of a new project; nothing written is `noop`."""
    lines = [f"wrote {paths.shown(path, here)}" for path in written] or ["nothing to do"]
    return result(
        "init",
        [{"path": str(path)} for path in written],
        status="ok" if written else "noop",
        text="\n".join([*lines, "", "next:", *(f"  {line}" for line in following)]),
        extra={"path": str(directory), "next": tuple(following)},
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    return {
        "result/init": schema.result(schema.record(path=schema.TEXT), path=schema.TEXT, next=schema.NAMES),
    }
