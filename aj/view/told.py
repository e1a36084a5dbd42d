"""When something was told, and what could not be read: beside a table, and as keys of its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.base import units
from aj.view import schema
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema
    from aj.wire.azure import FailedPart, Told


def keys(told: Told) -> Item:
    """Return the keys that a document has besides its rows."""
    return {
        "as_of": told.as_of,
        "age_s": told.age_s,
        "is_stale": told.is_stale,
        "failures": codec.dump(told.failures),
    }


def footer(told: Told, left_out: int = 0) -> list[str]:
    """Return the remarks below a table: how old it is, and how many rows were left out."""
    lines = [f"as of {units.duration(told.age_s)} ago"] if told.age_s >= 1 or told.is_stale else []
    if left_out:
        lines.append(f"{left_out} more that are 0 or of no use to a job: `--all`, `--full`")
    return lines


def warnings(told: Told) -> list[tuple[str, str]]:
    """Return code and words of what a reader must know: parts that gave no answer, and rows that are old."""
    found = [("part-failed", failed(part)) for part in told.failures]
    if told.is_stale:
        why = f"it could not be renewed: {told.problem}" if told.problem else "a new answer is being fetched"
        found.append(("stale", f"this is {units.duration(told.age_s)} old; {why}"))
    return [*found, *(("azure", words) for words in told.warnings)]


def failed(part: FailedPart) -> str:
    """Write a part that gave no answer as one line."""
    return f"{part.part}: {part.message}"


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of these keys."""
    text = schema.TEXT
    return {
        "as_of": text,
        "age_s": schema.NUMBER,
        "is_stale": schema.YES_NO,
        "failures": failures_schema(),
    }


def failures_schema() -> Schema:
    """Return the schema of parts that gave no answer."""
    return schema.many(schema.record(part=schema.TEXT, message=schema.TEXT, code=schema.TEXT))


def ratio(used: int | None, limit: int | None, *, has_limit: bool = True) -> str | None:
    """Write use and limit in one word, as `16/48`; None when nothing is known of either."""
    if used is None and limit is None and not has_limit:
        return None
    return f"{used or 0}/{'no limit' if limit is None else limit}"
