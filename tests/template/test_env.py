"""Variables of the command line: the first `=` splits, and a value is never touched."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.base.errors import OptionError, UserError
from aj.template import env
from tests.template.kit import spot

VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@pytest.mark.rule("C-161", "C-313", "T90")
@given(VALUES)
def test_a_value_arrives_as_it_was_typed(value: str) -> None:
    assert env.pairs([f"A={value}"], {}) == {"A": value}
    assert env.pairs(["A"], {"A": value}) == {"A": value}


@pytest.mark.rule("C-161", "C-313")
@given(VALUES.filter(lambda value: "\n" not in value and not value.endswith("\r")))
def test_a_line_of_a_file_is_a_value_as_it_stands(value: str) -> None:
    assert env.file_pairs(f"# note\n\nA={value}\r\nB=2\n".encode(), "f") == {"A": value, "B": "2"}


@pytest.mark.rule("C-161")
def test_nothing_is_expanded_or_unquoted() -> None:
    assert env.file_pairs(b'\xef\xbb\xbfA="x" # y\n  # note\nB=$HOME=1\nC=', "f") == {
        "A": '"x" # y',
        "B": "$HOME=1",
        "C": "",
    }
    assert env.pairs(["A=1", "A=2=3"], {}) == {"A": "2=3"}


@pytest.mark.rule("C-161")
@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("MISSING", "-e MISSING: the variable MISSING is not set here"),
        ("1A=x", "-e 1A=x: `1A` cannot be the name of a variable"),
        ("=x", "-e =x: `` cannot be the name of a variable"),
        ("A-B", "-e A-B: `A-B` cannot be the name of a variable"),
    ],
)
def test_a_wrong_word_is_told(word: str, says: str) -> None:
    with pytest.raises(OptionError) as caught:
        env.pairs([word], {})
    assert caught.value.message == says


@pytest.mark.rule("C-161")
@pytest.mark.parametrize(
    ("line", "says"),
    [(b"A", "a line of an environment file is NAME=VALUE"), (b"A B=1", "`A B` cannot be the name of a variable")],
)
def test_a_wrong_line_is_told_with_its_number(line: bytes, says: str) -> None:
    with pytest.raises(UserError) as caught:
        env.file_pairs(b"X=1\n" + line, "f.env")
    assert caught.value.message == says
    assert spot(caught.value) == (2, 1)


def test_a_value_that_is_no_text_is_refused() -> None:
    with pytest.raises(UserError, match="not UTF-8"):
        env.pairs(["A"], {"A": os.fsdecode(b"\xff")})
    with pytest.raises(UserError, match="f:1: the value is not UTF-8"):
        env.file_pairs(b"A=\xff", "f")
    with pytest.raises(UserError, match="NUL"):
        env.file_pairs(b"A=x\0", "f")
