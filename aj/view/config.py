"""Settings as rows: the key, its value, and where that comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import paths, redact
from aj.store.keys import KEYS
from aj.view import schema
from aj.view.document import Column, Document, Form, result

if TYPE_CHECKING:
    from aj.model.json import Json
    from aj.store.config import Setting
    from aj.view.document import Item
    from aj.view.schema import Schema

COLUMNS = (
    Column("key", form=Form.ID),
    Column("value"),
    Column("source"),
    Column("place", "place_text", Form.ID),
    Column("meaning", flexible=True),
)


def item(setting: Setting, here: Path) -> Item:
    """Return a setting as JSON values; `file` is a variable's name when it comes from the environment."""
    place = setting.place
    shown = f"{paths.shown(place.file, here)}" + (f":{place.line}" if place and place.line else "") if place else None
    return {
        "key": setting.key,
        "value": _shown(setting),
        "source": setting.source,
        "file": place.file if place else None,
        "line": (place.line or None) if place else None,
        "place_text": shown,
        "meaning": KEYS[setting.key].says,
    }


def settings(found: Sequence[Setting], here: Path) -> Document:
    """Make the table of settings."""
    items = [item(setting, here) for setting in found]
    return Document("config", {"items": tuple(items)}, rows=items, columns=COLUMNS)


def one(setting: Setting, here: Path) -> Document:
    """Make the document of one setting; its text is the value alone."""
    return Document("config", {"items": (item(setting, here),)}, text=written(_shown(setting)))


def _shown(setting: Setting) -> Json:
    """Return the value without the password that an address may hold."""
    return redact.text(setting.value) if isinstance(setting.value, str) and "://" in setting.value else setting.value


def written(value: Json) -> str:
    """Write a value as it is typed: a list with commas, true and false in small letters."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(written(part) for part in value)
    return str(value)


def files(found: Sequence[tuple[str, Path]]) -> Document:
    """Make the table of the files that hold settings, each with whether it is there."""
    items: list[Item] = [{"source": source, "file": str(file), "exists": file.exists()} for source, file in found]
    columns = (Column("source"), Column("exists"), Column("file", form=Form.ID))
    return Document("config.path", {"items": tuple(items)}, rows=items, columns=columns)


def unset(key: str, file: Path, *, was_set: bool) -> Document:
    """Make the document of a setting that was taken back."""
    words = f"{key} is no longer set" if was_set else f"{key} was not set there"
    return result("unset", [{"key": key, "file": str(file)}], status="ok" if was_set else "noop", text=words)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    maybe_text = schema.maybe(schema.TEXT)
    setting = schema.record(
        key=schema.TEXT,
        value=schema.ANY,
        source=schema.one_of("environment", "project", "user", "default"),
        file=maybe_text,
        line=schema.maybe(schema.WHOLE),
        place_text=maybe_text,
        meaning=schema.TEXT,
    )
    file = schema.record(source=schema.one_of("project", "user"), file=schema.TEXT, exists=schema.YES_NO)
    return {
        "config": schema.record(items=schema.many(setting)),
        "result/unset": schema.result(schema.record(key=schema.TEXT, file=schema.TEXT)),
        "config.path": schema.record(items=schema.many(file)),
    }
