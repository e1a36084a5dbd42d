"""Every rule of merging as a table, and the whole against a second, naive merge."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.template import merge, tree
from aj.template.tree import Section
from tests.template.kit import merged, merged_tree, section

ROWS = [
    pytest.param(
        ["{a: 1, b: {x: 1}}", "{b: {y: 2}, c: 3}"],
        {"a": 1, "b": {"x": 1, "y": 2}, "c": 3},
        id="dictionaries",
        marks=pytest.mark.rule("C-106"),
    ),
    pytest.param(["{a: 1}", "{}"], {"a": 1}, id="empty", marks=pytest.mark.rule("C-107")),
    pytest.param(["{v: {a: 1}}", "{v: {}}"], {"v": {"a": 1}}, id="empty-inside", marks=pytest.mark.rule("C-107")),
    pytest.param(
        ["v: [{role: a, do: [x]}, {role: b}]", "v: [{role: c, do: [y]}]"],
        {"v": [{"role": "c", "do": ["x", "y"]}, {"role": "b"}]},
        id="by-index",
        marks=pytest.mark.rule("C-108"),
    ),
    pytest.param(
        ["v: [{a: 1}]", "v: [{b: 2}, {c: 3}]"],
        {"v": [{"a": 1, "b": 2}, {"c": 3}]},
        id="upper-longer",
        marks=pytest.mark.rule("C-109"),
    ),
    pytest.param(
        ["v: [{p: 1}, {p: 2}]", "v: [null, {q: 3}]"],
        {"v": [{"p": 1}, {"p": 2, "q": 3}]},
        id="null-item",
        marks=pytest.mark.rule("C-110"),
    ),
    pytest.param(
        ["v: [{p: 1}, x]", "v: [y, {q: 2}, z]"],
        {"v": ["y", {"q": 2}, "z"]},
        id="mixed-items",
        marks=pytest.mark.rule("C-111"),
    ),
    pytest.param(["v: [{p: 1}]", "v: []"], {"v": [{"p": 1}]}, id="empty-list", marks=pytest.mark.rule("C-112")),
    pytest.param(
        ["v: [a, b]", "v: [c, b]"], {"v": ["a", "b", "c", "b"]}, id="join", marks=pytest.mark.rule("C-113", "T93")
    ),
    pytest.param(["v: [[1]]", "v: [[2]]"], {"v": [[1], [2]]}, id="nested-lists", marks=pytest.mark.rule("C-114")),
    pytest.param(
        ["v: [{a: 1}, [1]]", "v: [{b: 2}, [2]]"],
        {"v": [{"a": 1, "b": 2}, [2]]},
        id="nested-list-at-an-index",
        marks=pytest.mark.rule("C-114"),
    ),
    pytest.param(["v: []", "v: [q]"], {"v": ["q"]}, id="nothing-joined", marks=pytest.mark.rule("C-115")),
    pytest.param(["v: [a]", "v: []"], {"v": ["a"]}, id="joined-with-nothing", marks=pytest.mark.rule("C-115")),
    pytest.param(
        ["v: [1]", "v: [2]", "v: [{x: 1}]"], {"v": [{"x": 1}, 2]}, id="three", marks=pytest.mark.rule("C-116", "C-104")
    ),
    pytest.param(["a: x", 'a: ""'], {"a": ""}, id="empty-text", marks=pytest.mark.rule("C-117")),
    pytest.param(["a: 5", "a: 0"], {"a": 0}, id="zero", marks=pytest.mark.rule("C-117")),
    pytest.param(["a: true", "a: false"], {"a": False}, id="false", marks=pytest.mark.rule("C-117")),
    pytest.param(["a: [1]", "a: x"], {"a": "x"}, id="list-scalar", marks=pytest.mark.rule("C-118")),
    pytest.param(["a: {k: 1}", "a: [1]"], {"a": [1]}, id="dictionary-list", marks=pytest.mark.rule("C-118")),
    pytest.param(["a: x", "a: {k: 1}"], {"a": {"k": 1}}, id="scalar-dictionary", marks=pytest.mark.rule("C-118")),
    pytest.param(["a: 1", "a: null"], {"a": 1}, id="null-over-value", marks=pytest.mark.rule("C-119")),
    pytest.param(["a: null", "a: 1"], {"a": 1}, id="value-over-null", marks=pytest.mark.rule("C-119")),
    pytest.param(["a: null", "a: ~"], {"a": None}, id="null-over-null", marks=pytest.mark.rule("C-119", "C-126")),
    pytest.param(["a: {b: 1}", "a:"], {"a": {"b": 1}}, id="null-over-dictionary", marks=pytest.mark.rule("C-119")),
    pytest.param(["a: [1, 2]", "a: !replace [3]"], {"a": [3]}, id="replace-list", marks=pytest.mark.rule("C-120")),
    pytest.param(
        ["a: {x: 1}", "a: !replace {}"], {"a": {}}, id="replace-with-nothing", marks=pytest.mark.rule("C-120")
    ),
    pytest.param(["a: x", "a: !replace [3]"], {"a": [3]}, id="replace-scalar", marks=pytest.mark.rule("C-120")),
    pytest.param(["a: 1", "!replace {b: 2}"], {"b": 2}, id="replace-all", marks=pytest.mark.rule("C-120")),
    pytest.param(
        ["a: [1]", "a: !replace [3]", "a: [4]"], {"a": [3, 4]}, id="above-a-replace", marks=pytest.mark.rule("C-121")
    ),
    pytest.param(
        ["a: [{a: 1}]", "a: [!replace {b: 2}]"], {"a": [{"b": 2}]}, id="replace-item", marks=pytest.mark.rule("C-122")
    ),
    pytest.param(["{a: 1, b: 2}", "{a: !unset }"], {"b": 2}, id="unset", marks=pytest.mark.rule("C-123", "T93")),
    pytest.param(
        ["{a: {x: 1, y: [1]}}", "{a: {y: !unset }}"],
        {"a": {"x": 1}},
        id="unset-inside",
        marks=pytest.mark.rule("C-123"),
    ),
    pytest.param(
        ["{a: 1, b: 2}", "{a: !unset }", "{a: 3}"], {"b": 2, "a": 3}, id="set-again", marks=pytest.mark.rule("C-124")
    ),
    pytest.param(
        ["{a: [1], b: 2}", "{a: !unset }", "{a: [3]}"],
        {"b": 2, "a": [3]},
        id="list-set-again",
        marks=pytest.mark.rule("C-124"),
    ),
]


@pytest.mark.parametrize(("layers", "due"), ROWS)
def test_two_layers_become_one(layers: list[str], due: dict[str, object]) -> None:
    found = merged(*layers)
    assert json.dumps(found) == json.dumps(due)  # the order of keys counts


def test_a_base_that_replaces_or_removes_does_so_to_what_stands_before_it() -> None:
    lower = section("{a: [1], b: 1, c: {x: 1}}")
    notes: list[object] = []
    base = merge.merge(tree.EMPTY, section("{a: !replace [2], b: !unset , c: {x: !unset , y: 2}}"), notes)
    upper = merge.merge(base, section("{a: [3]}"), notes)
    found = merge.finished(merge.merge(lower, upper, notes), notes)
    assert tree.mapping(found) == {"a": [2, 3], "c": {"y": 2}}
    assert notes == []


@pytest.mark.rule("C-126")
def test_an_unset_of_nothing_is_told() -> None:
    notes: list[object] = []
    assert tree.mapping(merged_tree("a: 1", "{b: !unset , c: {d: !unset }}", notes=notes)) == {"a": 1, "c": {}}
    assert [note.code for note in notes] == ["unset-nothing", "unset-nothing"]


@pytest.mark.rule("C-118")
def test_a_change_of_kind_is_told_and_by_replace_it_is_meant() -> None:
    notes: list[object] = []
    merged_tree("{a: [1], b: {c: x}}", "{a: x, b: {c: [1]}}", notes=notes)
    assert [(note.code, note.path) for note in notes] == [("mixed-kinds", "a"), ("mixed-kinds", "b.c")]
    silent: list[object] = []
    merged_tree("{a: x, sku: G1, n: 1}", "{a: !replace [1], sku: {'1': G1}, n: text}", notes=silent)
    assert silent == []


NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["", "x", "y"]), st.booleans())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
CONFIGS = st.dictionaries(NAMES, VALUES, max_size=4)


def naive(lower: object, upper: object) -> object:
    """The rules once more, written for clearness alone: no places, no marks."""
    if upper is None:
        return copy.deepcopy(lower)
    if isinstance(lower, dict) and isinstance(upper, dict):
        found = copy.deepcopy(lower)
        for key, value in upper.items():
            found[key] = naive(lower[key], value) if key in lower else copy.deepcopy(value)
        return found
    if isinstance(lower, list) and isinstance(upper, list):
        if not any(isinstance(item, dict) for item in lower + upper):
            return copy.deepcopy(lower + upper)
        found = []
        for at in range(max(len(lower), len(upper))):
            if at >= len(upper):
                found.append(copy.deepcopy(lower[at]))
            elif at >= len(lower):
                found.append(copy.deepcopy(upper[at]))
            elif isinstance(lower[at], dict) and isinstance(upper[at], dict):
                found.append(naive(lower[at], upper[at]))
            else:
                found.append(copy.deepcopy(lower[at] if upper[at] is None else upper[at]))
        return found
    return copy.deepcopy(upper)


def merge_of(*layers: dict[str, object]) -> Section:
    found = tree.EMPTY
    for layer in layers:
        found = merge.merge(found, tree.section_of(layer), [])
    return merge.finished(found, [])


@pytest.mark.rule("C-104", "C-105")
@settings(max_examples=150, deadline=None)
@given(st.lists(CONFIGS, min_size=1, max_size=4))
def test_merging_agrees_with_the_naive_one_pair_by_pair(layers: list[dict[str, object]]) -> None:
    due: object = {}
    for layer in layers:
        due = naive(due, layer)
    assert json.dumps(tree.mapping(merge_of(*layers))) == json.dumps(due)


@pytest.mark.rule("C-105")
@settings(max_examples=100, deadline=None)
@given(CONFIGS, CONFIGS)
def test_the_order_is_the_lower_layers_and_then_the_new_keys(
    lower: dict[str, object], upper: dict[str, object]
) -> None:
    found = list(tree.mapping(merge_of(lower, upper)))
    assert found == list(lower) + [key for key in upper if key not in lower]


@pytest.mark.rule("C-105")
@settings(max_examples=100, deadline=None)
@given(CONFIGS, CONFIGS)
def test_no_result_shares_a_value_with_another(lower: dict[str, object], upper: dict[str, object]) -> None:
    before = json.dumps([lower, upper])
    found = merge_of(lower, upper)
    one, other = tree.mapping(found), tree.mapping(found)
    untouched = json.dumps(other)
    _spoil(one)
    assert json.dumps(other) == untouched
    assert json.dumps(tree.mapping(found)) == untouched
    assert json.dumps([lower, upper]) == before


def _spoil(value: object) -> None:
    """Change everything that can be changed."""
    if isinstance(value, dict):
        for item in value.values():
            _spoil(item)
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in value:
            _spoil(item)
        value.append("spoilt")


@pytest.mark.rule("C-104")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(NAMES, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=4), max_size=4))
def test_without_dictionaries_in_lists_it_does_not_matter_where_one_groups(layers: list[dict[str, object]]) -> None:
    right: Section = tree.EMPTY
    for layer in reversed(layers):
        right = merge.merge(tree.section_of(layer), right, [])
    left = merge_of(*layers)
    assert tree.mapping(merge.finished(right, [])) == tree.mapping(left) or _kinds_differ(layers)


def _kinds_differ(layers: list[dict[str, object]]) -> bool:
    """A key that is a list in one layer and a single value in another: there grouping does matter."""
    kinds: dict[str, set[bool]] = {}
    for layer in layers:
        for key, value in layer.items():
            if value is not None:
                kinds.setdefault(key, set()).add(isinstance(value, list))
    return any(len(found) > 1 for found in kinds.values())
