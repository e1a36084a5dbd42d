"""What a look at this machine found, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import text
from aj.model.finding import Finding, Verdict
from aj.view import schema
from aj.view.document import Column, Document, Form

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema

COLUMNS = (
    Column("check"),
    Column("verdict", form=Form.STATE),
    Column("found", "message", flexible=True),
    Column("hint", flexible=True),
)
BAD = (Verdict.FAILED, Verdict.WARNING)


def item(found: Finding) -> Item:
    """Return a finding as JSON values; `ok` unless something is to be mended."""
    return {
        "check": found.check,
        "ok": found.verdict not in BAD,
        "verdict": found.verdict.value,
        "message": found.message,
        "hint": found.hint,
    }


def findings(found: Sequence[Finding]) -> Document:
    """Make the list of findings, and one line on what they come to."""
    items = [item(one) for one in found]
    counted = {verdict: sum(one.verdict is verdict for one in found) for verdict in BAD}
    told = [f"{text.plural(count, verdict.value)}" for verdict, count in counted.items() if count]
    footer = [", ".join(told) if told else "nothing to mend"]
    return Document("doctor", {"items": tuple(items)}, rows=items, columns=COLUMNS, footer=footer)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    one = schema.record(
        check=schema.TEXT,
        ok=schema.YES_NO,
        verdict=schema.one_of(*(verdict.value for verdict in Verdict)),
        message=schema.TEXT,
        hint=schema.maybe(schema.TEXT),
    )
    return {"doctor": schema.record(items=schema.many(one))}
