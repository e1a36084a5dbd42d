"""Nouns survive the way through JSON; whatever does not fit is refused at its path."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base.errors import UserError
from aj.model import code, job, log, record, ticket, workload
from aj.model.json import Json
from aj.wire import codec, messages


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Leaf:
    name: str
    size: int = 0


@dataclass(frozen=True)
class Tree:
    """Every kind of field that a noun may have."""

    word: str
    count: int
    share: float
    yes: bool
    raw: bytes
    colour: Colour
    leaf: Leaf
    maybe: str | None
    either: int | str
    leaves: tuple[Leaf, ...] = ()
    pair: tuple[str, int] = ("", 0)
    env: Mapping[str, str] = field(default_factory=dict)
    by_name: Mapping[str, Leaf | None] = field(default_factory=dict)
    free: Mapping[str, Json] = field(default_factory=dict)


TEXT = st.text(max_size=8) | st.sampled_from(["\udcff", "é", "\x00", "\u2028", "😀"])
LEAF = st.builds(Leaf, TEXT, st.integers())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TREE = st.builds(
    Tree,
    word=TEXT,
    count=st.integers(),
    share=st.floats(allow_nan=False, allow_infinity=False),
    yes=st.booleans(),
    raw=st.binary(max_size=8),
    colour=st.sampled_from(Colour),
    leaf=LEAF,
    maybe=st.none() | TEXT,
    either=st.integers() | TEXT,
    leaves=st.lists(LEAF, max_size=3).map(tuple),
    pair=st.tuples(TEXT, st.integers()),
    env=st.dictionaries(TEXT, TEXT, max_size=3),
    by_name=st.dictionaries(TEXT, st.none() | LEAF, max_size=3),
    free=st.dictionaries(TEXT, JSON, max_size=3),
)


def through(tree: object) -> object:
    """What arrives at the other side, bytes and all."""
    return json.loads(json.dumps(codec.dump(tree)).encode("ascii"))


@given(TREE)
@settings(max_examples=60, deadline=None)
def test_what_is_sent_arrives(tree: Tree) -> None:
    assert codec.load(Tree, through(tree)) == tree


@given(TREE, st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.rule("C-209")
def test_a_field_too_many_or_too_few_is_refused_at_its_path(tree: Tree, data: st.DataObject) -> None:
    value = through(tree)
    assert isinstance(value, dict)
    with pytest.raises(UserError, match=r"^Tree\.extra: unknown field$"):
        codec.load(Tree, {**value, "extra": 1})
    due = [item.name for item in dataclasses.fields(Tree) if item.default is item.default_factory]
    gone = data.draw(st.sampled_from(due))
    with pytest.raises(UserError, match=rf"^Tree\.{gone}: missing$"):
        codec.load(Tree, {name: item for name, item in value.items() if name != gone})


WHOLE = through(Tree("w", 1, 0.5, True, b"x", Colour.RED, Leaf("l"), None, 3, leaves=(Leaf("a"), Leaf("b"))))

BAD: list[tuple[dict[str, object], str]] = [
    ({"count": True}, "Tree.count: expected a whole number, found bool"),
    ({"count": 1.0}, "Tree.count: expected a whole number, found float"),
    ({"count": "1"}, "Tree.count: expected a whole number, found str"),
    ({"share": True}, "Tree.share: expected a number, found bool"),
    ({"share": math.nan}, "Tree.share: nan is not a number"),
    ({"share": math.inf}, "Tree.share: inf is not a number"),
    ({"share": 10**400}, "Tree.share: the number is too large"),
    ({"yes": 1}, "Tree.yes: expected true or false, found int"),
    ({"word": None}, "Tree.word: expected text, found NoneType"),
    ({"raw": "not base64!"}, "Tree.raw: not base64"),
    ({"raw": 5}, "Tree.raw: expected base64 text, found int"),
    ({"colour": "green"}, "Tree.colour: 'green' is none of red, blue"),
    ({"colour": []}, "Tree.colour: [] is none of red, blue"),
    ({"leaf": []}, "Tree.leaf: expected a mapping, found list"),
    ({"leaf": {"name": 1}}, "Tree.leaf.name: expected text, found int"),
    ({"leaf": {"name": "x", "more": 1}}, "Tree.leaf.more: unknown field"),
    ({"leaves": "ab"}, "Tree.leaves: expected a list, found str"),
    ({"leaves": [{"name": "a"}, {"name": 2}]}, "Tree.leaves[1].name: expected text, found int"),
    ({"pair": ["a"]}, "Tree.pair: expected 2 items, found 1"),
    ({"pair": ["a", "b"]}, "Tree.pair[1]: expected a whole number, found str"),
    ({"env": {"A": 1}}, "Tree.env.A: expected text, found int"),
    ({"env": [1]}, "Tree.env: expected a mapping, found list"),
    ({"env": {1: "a"}}, "Tree.env: expected text as a key, found int"),
    ({"by_name": {"x": {}}}, "Tree.by_name.x.name: missing"),
    ({"either": 0.5}, "Tree.either: expected text, found float"),
]


@pytest.mark.rule("C-209", "C-297")
@pytest.mark.parametrize(("change", "says"), BAD, ids=[says for _, says in BAD])
def test_a_wrong_type_is_refused_at_its_path(change: dict[str, object], says: str) -> None:
    assert isinstance(WHOLE, dict)
    with pytest.raises(UserError) as caught:
        codec.load(Tree, {**WHOLE, **change})
    assert str(caught.value).startswith(says)
    assert caught.value.code == "bad-field"


def test_a_file_of_a_newer_release_is_read_without_what_we_do_not_know() -> None:
    assert isinstance(WHOLE, dict)
    newer = {**WHOLE, "extra": 1, "leaf": {"name": "l", "colour": "red"}}
    assert codec.load(Tree, newer, lenient=True) == codec.load(Tree, WHOLE)
    with pytest.raises(UserError, match="expected text"):
        codec.load(Tree, {**newer, "word": 1}, lenient=True)


NOUNS = [
    noun
    for room in (messages, ticket, record, workload, job, code, log)
    for _, noun in inspect.getmembers(room, lambda item: inspect.isclass(item) and dataclasses.is_dataclass(item))
]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_there_is_a_way_to_read_every_noun(noun: type) -> None:
    with pytest.raises(UserError, match="expected a mapping"):
        codec.load(noun, [])
    try:  # makes the reader of every field
        codec.load(noun, {})
    except UserError as error:
        assert str(error).endswith(": missing")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_json_number_is_not_sent(value: float) -> None:
    with pytest.raises(ValueError, match="no JSON form"):
        codec.dump({"x": value})


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}])
def test_what_has_no_form_is_not_sent(value: object) -> None:
    with pytest.raises(TypeError, match="no JSON form"):
        codec.dump(value)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b'{"a":1,"a":2}', "key 'a' stands twice"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b'{"a":' * 100_000, "not JSON: nested too deeply"),
        (b"1" * 5_000, "not JSON"),
    ],
)
@pytest.mark.rule("C-297")
def test_a_document_that_is_not_strictly_json_is_refused(raw: bytes, says: str) -> None:
    with pytest.raises(UserError) as caught:
        codec.parse(raw)
    assert says in str(caught.value)
    assert caught.value.code == "bad-json"


@given(JSON)
@settings(max_examples=60, deadline=None)
def test_a_document_that_is_json_is_read(value: object) -> None:
    assert codec.parse(json.dumps(value)) == value
