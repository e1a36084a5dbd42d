"""YAML that is written here means the same to readers of 1.1 and of 1.2."""

from __future__ import annotations

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.template import dump, tree, yaml

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        [
            "yes",
            "0o17",
            "1:30",
            "1e3",
            "1.",
            ".5",
            "~",
            "null",
            "2024-01-01",
            "0x1",
            "017",
            "=",
            "<<",
            "-",
            "a: b",
            " x",
        ]
    ),
    st.sampled_from(
        [
            "$x",
            "a\nb",
            "\ttab",
            "é",
            "#",
            "!x",
            "&a",
            "*a",
            "%",
            "@",
            "`",
            "",
            "{}",
            "1_000",
            "on",
            "y",
            "\x85",
            "\u2028",
        ]
    ),
)
VALUES = st.recursive(
    st.one_of(TEXT, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.rule("C-255", "C-054")
@settings(max_examples=120, deadline=None)
@given(st.dictionaries(TEXT.filter(lambda key: key != "<<"), VALUES, max_size=4))
def test_both_kinds_of_reader_give_the_value_back(value: dict[str, object]) -> None:
    text = dump.dump(value)
    assert pyyaml.safe_load(text) == value
    document = yaml.read(text.encode(), "t.yaml")
    assert document.faults == ()
    assert document.root is not None
    assert tree.plain(document.root) == value


@pytest.mark.rule("C-255")
def test_the_order_of_keys_is_kept_and_shared_values_are_written_out() -> None:
    shared = ["x"]
    assert dump.dump({"b": shared, "a": shared, "n": "017", "v": "yes"}) == "b:\n- x\na:\n- x\nn: '017'\nv: 'yes'\n"


LINES = st.lists(
    st.sampled_from(["", " ", "a", " a", "a ", "\t", "#", "- x", "a: b", "|", "é\u2028", "---", "..."]), max_size=6
)


@settings(max_examples=120, deadline=None)
@given(LINES, st.booleans())
def test_lines_that_stand_as_lines_are_the_same_text(lines: list[str], ends: bool) -> None:
    text = "\n".join(lines) + "\n" * ends
    written = dump.readable({"a": [text]})
    assert pyyaml.safe_load(written) == {"a": [text]}
    document = yaml.read(written.encode(), "t.yaml")
    assert isinstance(document.root, tree.Section)
    assert tree.mapping(document.root) == {"a": [text]}


def test_a_program_stands_there_as_a_person_would_write_it() -> None:
    assert dump.readable({"a": "if x; then\n  y\nfi\n"}) == "a: |\n  if x; then\n    y\n  fi\n"
