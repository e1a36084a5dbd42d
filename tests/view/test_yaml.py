"""YAML that readers of 1.1 and of 1.2 take for the same values."""

from __future__ import annotations

import re

import pytest
import yaml as reader
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.view import yaml

# What the core schema of YAML 1.2 reads as something other than text.
OTHER_IN_1_2 = re.compile(
    r"null|Null|NULL|~|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN|"
)


@pytest.mark.rule("C-054")
@pytest.mark.parametrize(
    "word",
    [
        "yes",
        "no",
        "on",
        "1:30",
        "0o17",
        "1e3",
        "0123",
        "2024-01-01",
        "1_0",
        "~",
        "",
        "null",
        "0x1F",
        ".5",
        "1.",
        "=",
        "<<",
    ],
)
def test_text_that_looks_like_another_type_is_quoted(word: str) -> None:
    written = yaml.dump({"k": word})
    assert reader.safe_load(written) == {"k": word}
    plain = written.removeprefix("k: ").strip()
    assert plain[:1] in ("'", '"') or not OTHER_IN_1_2.fullmatch(plain)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.rule("C-054")
@settings(max_examples=150, deadline=None)
@given(values)
def test_what_is_written_is_read_back(value: object) -> None:
    written = yaml.dump({"k": value})  # type: ignore[dict-item]
    assert reader.safe_load(written) == {"k": value}


def test_lines_are_readable() -> None:
    assert yaml.dump({"a": "x\ny\n", "b": [1, {"c": "d"}], "e": {}, "u": "ü"}) == (
        "a: |\n  x\n  y\nb:\n  - 1\n  - c: d\ne: {}\nu: ü\n"
    )


def test_the_same_list_twice_is_no_alias() -> None:
    shared = ["a"]
    assert yaml.dump({"x": shared, "y": shared}) == "x:\n  - a\ny:\n  - a\n"
