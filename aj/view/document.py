"""What a command answers, once, for every format: a table and a JSON document made of the same rows.

A `Document` holds plain JSON values. Its columns only say which of them a table shows and how, so the
table can never tell something that the JSON does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.model.json import Json

if TYPE_CHECKING:
    from aj.base.errors import AjError

SCHEMA_VERSION = 1
Item = Mapping[str, Json]


class Form(StrEnum):
    """How a value is written in a table."""

    TEXT = "text"
    ID = "id"
    STATE = "state"
    NUMBER = "number"
    SIZE = "size"
    SECONDS = "seconds"
    AGE = "age"
    TIME = "time"


@dataclass(frozen=True)
class Column:
    """One column: its title, the key of the row (`target.name` looks into a mapping), and its form.

    A flexible column may be shortened to fit a terminal; ids and numbers never are.
    """

    title: str
    key: str = ""
    form: Form = Form.TEXT
    flexible: bool = False

    def of(self, item: Item) -> Json:
        """Return the column's value in a row; None when a step of the key is not there."""
        value: Json = item
        for step in (self.key or self.title).split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value


@dataclass(frozen=True)
class Document:
    """One answer.

    `body` are the keys of the JSON document beside `schema_version`, `kind` and `warnings`. A table has
    `columns` for its `rows`; or `upright`, one line a field of the single row; or ready-made `text`.
    `ids` is what the format `name` prints, None when there is none. `empty` is said when there are no rows.
    `after` are lines below the table; `footer` are remarks beside the answer, on stderr.
    """

    kind: str
    body: Item
    rows: Sequence[Item] = ()
    columns: Sequence[Column] = ()
    upright: bool = False
    text: str | None = None
    ids: Sequence[str] | None = None
    empty: str | None = None
    after: Sequence[str] = ()
    footer: Sequence[str] = ()

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats that this document can take."""
        names = ("table", "json", "jsonl", "yaml", "name")
        return names if self.ids is not None else names[:-1]

    def whole(self, warnings: Sequence[Item]) -> dict[str, Json]:
        """Return the complete JSON document."""
        return {"schema_version": SCHEMA_VERSION, "kind": self.kind, **self.body, "warnings": tuple(warnings)}


def listing(
    kind: str,
    items: Sequence[Item],
    columns: Sequence[Column],
    *,
    noun: str,
    ids: str | None = None,
    truncated: bool = False,
    extra: Item | None = None,
    footer: Sequence[str] = (),
) -> Document:
    """Make a list document: `items`, `truncated`, `next_cursor`; `ids` is the key that `-o name` prints."""
    return Document(
        kind,
        {**(extra or {}), "items": tuple(items), "truncated": truncated, "next_cursor": None},
        rows=items,
        columns=columns,
        ids=None if ids is None else [str(item[ids]) for item in items],
        empty=f"no {noun}",
        footer=footer,
    )


def single(
    kind: str,
    item: Item,
    columns: Sequence[Column] = (),
    *,
    text: str | None = None,
    ids: str | None = None,
    after: Sequence[str] = (),
) -> Document:
    """Make a document of one thing under `item`; its table is one line a column, or the given text."""
    return Document(
        kind,
        {"item": item},
        rows=[item],
        columns=columns,
        upright=True,
        text=text,
        ids=None if ids is None else [str(item[ids])],
        after=after,
    )


def result(
    action: str,
    items: Sequence[Item],
    columns: Sequence[Column] = (),
    *,
    status: str = "ok",
    text: str | None = None,
    ids: str | None = None,
    extra: Item | None = None,
) -> Document:
    """Make the document of an action: `action`, `status` (ok, noop, failed, unknown) and `items`."""
    return Document(
        "result",
        {"action": action, "status": status, **(extra or {}), "items": tuple(items)},
        rows=items,
        columns=columns,
        text=text,
        ids=None if ids is None else [str(item[ids]) for item in items],
    )


@dataclass(frozen=True)
class Notice:
    """A warning: a stable word, what it says, and where."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None

    @property
    def item(self) -> Item:
        return {"code": self.code, "message": self.message, "file": self.file, "line": self.line}


def failure(error: AjError, partial: Sequence[Item] = ()) -> dict[str, Json]:
    """Return the error document, with what was found before the error in `details.partial`."""
    from aj.wire import errors  # the nouns behind it cost 15 ms, and most commands fail seldom

    whole = errors.document(error)
    told = whole["error"]
    assert isinstance(told, dict)
    told["message"] = str(told["message"]).replace("\n", " ")
    if partial:
        told["details"] = {**told["details"], "partial": tuple(partial)}
    return whole
