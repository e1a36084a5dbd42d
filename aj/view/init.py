"""A new project: what was written, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import paths, redact
from aj.view import schema
from aj.view.document import result

if TYPE_CHECKING:
    from aj.view.document import Document
    from aj.view.schema import Schema


def made(
    directory: Path,
    written: Sequence[Path],
    following: Sequence[str],
    here: Path,
    settings: Mapping[str, str] | None = None,
    *,
    is_dry: bool = False,
) -> Document:
    """Make the document of a project; nothing written is `noop`. `settings` are those that were settled."""
    verb = "would write" if is_dry else "wrote"
    lines = [f"{verb} {paths.shown(path, here)}" for path in written] or ["nothing to do"]
    settled = {key: redact.text(value) for key, value in (settings or {}).items()}
    lines += [f"{key} = {value}" for key, value in settled.items()]
    return result(
        "init",
        [{"path": str(path)} for path in written],
        status="ok" if written and not is_dry else "noop",
        text="\n".join([*lines, "", "next:", *(f"  {line}" for line in following)]),
        extra={"path": str(directory), "settings": settled, "next": tuple(following), "dry_run": is_dry},
    )


def of_amlt(config: Path, project: str, storage: str, following: Sequence[str], here: Path, *, how: str) -> Document:
    """Make the document of amlt's own project; `how` is created, kept or planned (a dry run)."""
    words = {"created": "amlt made", "kept": "kept", "planned": "amlt would make"}[how]
    file = paths.shown(config, here)
    lines = [f"{words} {file}: project {project}, storage account {storage}"]
    if following:
        lines += ["", "next:", *(f"  {line}" for line in following)]
    return result(
        "init-amlt",
        [{"path": str(config)}],
        status="ok" if how == "created" else "noop",
        text="\n".join(lines),
        extra={"project": project, "storage": storage, "next": tuple(following), "dry_run": how == "planned"},
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    return {
        "result/init": schema.result(
            schema.record(path=schema.TEXT),
            path=schema.TEXT,
            settings=schema.table(schema.TEXT),
            next=schema.NAMES,
            dry_run=schema.YES_NO,
        ),
        "result/init-amlt": schema.result(
            schema.record(path=schema.TEXT),
            project=schema.TEXT,
            storage=schema.TEXT,
            next=schema.NAMES,
            dry_run=schema.YES_NO,
        ),
    }
