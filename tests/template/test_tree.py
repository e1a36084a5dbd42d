"""Values that know their places: paths, kinds, plain values."""

from __future__ import annotations

import pytest

from aj.base.errors import Place
from aj.template import tree
from aj.template.tree import Items, Scalar, Section
from tests.template.kit import section


@pytest.mark.rule("C-127")
def test_a_path_is_written_so_that_it_can_be_typed() -> None:
    path = tree.step(tree.step(tree.step("", "jobs"), 0), "sku")
    assert path == "jobs[0].sku"
    assert tree.step("a", "b.c/d") == 'a["b.c/d"]'
    assert tree.step("", "é") == '["é"]'


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("{}", "a mapping", "a mapping"),
        ("[]", "a list", "a list"),
        ("~", "null", "null"),
        ("true", "true or false", "the flag `true`"),
        ("0x10", "a whole number", "the number `0x10`"),
        ("1.50", "a number", "the number `1.50`"),
        ("x", "text", "the text `x`"),
        ("y" * 80, "text", "the text `" + "y" * 57 + "…`"),
    ],
)
def test_a_value_is_named_by_its_kind(text: str, kind: str, shown: str) -> None:
    node = section(f"k: {text}").entries["k"]
    assert tree.kind(node) == kind
    assert tree.shown(node) == shown


def test_plain_values_and_back() -> None:
    value = {"a": [1, None, {"b": True}], "c": 1.5, "d": "x", "e": {}, "f": []}
    node = tree.section_of(value)
    assert tree.mapping(node) == value
    assert tree.plain(node) == value
    assert [path for path, _ in tree.leaves(node)] == ["a[0]", "a[1]", "a[2].b", "c", "d", "e", "f"]
    flag = node.entries["a"]
    assert isinstance(flag, Items)
    assert isinstance(flag.items[2], Section)
    assert flag.items[2].entries["b"] == Scalar(True, "true", tree.NOWHERE)


def test_the_place_of_one_character_is_known_on_one_line_only() -> None:
    found = section("{a: text, b: 'text', c: \"te\\nxt\", d: !!str text}")
    spots = {key: tree.inside(node, 2) for key, node in found.entries.items() if isinstance(node, Scalar)}
    assert spots["a"] == Place("t.yaml", 1, 7)
    assert spots["b"] == Place("t.yaml", 1, 17)
    assert spots["c"] == found.entries["c"].place
    assert spots["d"] == found.entries["d"].place
    assert tree.inside(Scalar("x", "x", tree.NOWHERE), 0) == tree.NOWHERE


def test_null_and_a_removed_key_are_not_given() -> None:
    found = section("{a: null, b: !unset , c: ''}")
    assert [found.given(key) for key in ("a", "b", "nowhere")] == [None, None, None]
    assert found.given("c") is not None
    assert found.key_place("nowhere") == found.place
