"""Values of a template that remember where they were written, and what a merge did to them.

Nodes are frozen, so that two trees may share them: a change is a new node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from aj.base.errors import Place
from aj.base.noun import dataclass
from aj.model.json import Json

Plain: TypeAlias = bool | int | float | str | None

NOWHERE = Place("")
_BARE = r"[A-Za-z0-9_-]+\Z"


class Rule(StrEnum):
    """How a value came to stand where it stands."""

    SET = "set"
    OVERRIDE = "override"
    MERGE = "merge"
    INDEX = "index"
    JOIN = "join"
    REPLACE = "replace"


@dataclass(frozen=True)
class Unset:
    """A key taken away. `hit` tells whether any lower layer had it."""

    place: Place
    hit: bool = False


@dataclass(frozen=True)
class Scalar:
    """One value. `raw` is its text as the file has it; for quoted text that is the text itself.

    `inset` is how many columns after its place the text begins, None when that says nothing (block text).
    `after` is the removal that cleared this path before the value was set again.
    """

    value: Plain
    raw: str
    place: Place
    inset: int | None = 0
    rule: Rule = Rule.SET
    hidden: tuple[Place, ...] = ()
    after: Unset | None = None


@dataclass(frozen=True)
class Items:
    """A list. With `replaces` it takes the place of a lower list instead of joining it."""

    items: tuple[Value, ...]
    place: Place
    replaces: bool = False
    rule: Rule = Rule.SET
    hidden: tuple[Place, ...] = ()
    after: Unset | None = None


@dataclass(frozen=True)
class Section:
    """A mapping, in the order of the file, with the place of each key."""

    entries: Mapping[str, Node]
    place: Place
    keys: Mapping[str, Place] = field(default_factory=dict)
    replaces: bool = False
    rule: Rule = Rule.SET
    hidden: tuple[Place, ...] = ()
    after: Unset | None = None

    def given(self, key: str) -> Value | None:
        """Return the value of a key; null and a removed key count as not given."""
        node = self.entries.get(key)
        return None if node is None or isinstance(node, Unset) or is_null(node) else node

    def key_place(self, key: str) -> Place:
        """Return where a key stands, or where the mapping begins."""
        return self.keys.get(key, self.place)


Value: TypeAlias = Scalar | Items | Section
Node: TypeAlias = Scalar | Items | Section | Unset
EMPTY = Section({}, NOWHERE)


def is_null(node: Node) -> bool:
    """Tell whether a node is null, which means "not given"."""
    return isinstance(node, Scalar) and node.value is None


def kind(node: Node) -> str:
    """Name the kind of a value as a sentence needs it: `a list`, `text`, `a whole number`."""
    if isinstance(node, Section):
        return "a mapping"
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Unset) or node.value is None:
        return "null"
    if isinstance(node.value, bool):
        return "true or false"
    if isinstance(node.value, int):
        return "a whole number"
    return "a number" if isinstance(node.value, float) else "text"


def shown(node: Node) -> str:
    """Name a value in an error: its kind, and its text when it is short."""
    if not isinstance(node, Scalar) or node.value is None:
        return kind(node)
    text = node.raw if len(node.raw) <= 60 else node.raw[:57] + "…"
    named = {"true or false": "the flag", "text": "the text"}.get(kind(node), "the number")
    return f"{named} `{text}`"


def step(path: str, key: str | int) -> str:
    """Add one step to a path: `jobs` and 0 give `jobs[0]`, `jobs[0]` and `sku` give `jobs[0].sku`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not re.match(_BARE, key):
        import json  # 3 ms, and such keys are rare

        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def inside(node: Scalar, offset: int) -> Place:
    """Return the place of one character of a text that stands on one line, else the place of the text."""
    if node.inset is None or not node.place.line or "\n" in node.raw:
        return node.place
    return Place(node.place.file, node.place.line, node.place.column + node.inset + offset)


def plain(node: Node) -> Json:
    """Return the value without places, as fresh lists and dictionaries."""
    if isinstance(node, Section):
        return {key: plain(item) for key, item in node.entries.items() if not isinstance(item, Unset)}
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return node.value if isinstance(node, Scalar) else None


def mapping(node: Section) -> dict[str, Json]:
    """Return a mapping without places, as fresh lists and dictionaries."""
    return {key: plain(item) for key, item in node.entries.items() if not isinstance(item, Unset)}


def of(value: Json) -> Value:
    """Make a tree of plain values, for values that come from no file."""
    if isinstance(value, Mapping):
        return section_of(value)
    if isinstance(value, list | tuple):
        return Items(tuple(of(item) for item in value), NOWHERE)
    if value is None or isinstance(value, bool):
        return Scalar(value, {None: "", True: "true", False: "false"}[value], NOWHERE)
    return Scalar(value, str(value), NOWHERE)


def section_of(values: Mapping[str, Json]) -> Section:
    """Make a mapping of plain values, for values that come from no file."""
    return Section({key: of(item) for key, item in values.items()}, NOWHERE)


def leaves(node: Node, path: str = "") -> Iterator[tuple[str, Value]]:
    """Give every value that holds no other, with its path, in the order of the tree."""
    if isinstance(node, Unset):
        return
    if isinstance(node, Section) and node.entries:
        for key, item in node.entries.items():
            yield from leaves(item, step(path, key))
    elif isinstance(node, Items) and node.items:
        for at, item in enumerate(node.items):
            yield from leaves(item, step(path, at))
    else:
        yield path, node
