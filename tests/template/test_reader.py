"""Typed reading: amounts and durations, and that every fault is kept."""

from __future__ import annotations

import pytest

from aj.template.reader import Reader
from tests.template.kit import section


def reader(text: str) -> Reader:
    return Reader(section(text), [])


@pytest.mark.rule("C-132", "C-130")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("512Gi", 512 * 2**30),
        ("1Ti", 2**40),
        ("250m", 0.25),
        ("0.5", 0.5),
        ("2", 2),
        ("'96'", 96),
        ("1k", 1000),
        ("2G", 2e9),
    ],
)
def test_an_amount_keeps_its_text_and_has_a_value(text: str, value: float) -> None:
    found = reader(f"k: {text}").quantity("k")
    assert found is not None
    assert found.value == value
    assert found.text == text.strip("'")


@pytest.mark.rule("C-130", "C-328")
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("64GB", "write 64Gi"),
        ("64gb", "write 64Gi"),
        ("64 Gi", "write 64Gi"),
        ("1.5mb", "write 1.5Mi"),
        ("lots", "write an amount such as 512Gi"),
        ("-1Gi", "write an amount such as 512Gi"),
        ("0", "write an amount such as 512Gi"),
        ("1e3", "write an amount such as 512Gi"),
    ],
)
def test_another_amount_shows_what_was_meant(text: str, hint: str) -> None:
    found = reader(f"k: {text}")
    assert found.quantity("k") is None
    assert [one.hint for one in found.issues] == [hint]


@pytest.mark.rule("C-130")
@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "memory: 64GB",
            "`memory` is `64GB`; a size above zero such as 512Gi, 500M or 1048576 is due",
            "write 64Gi",
        ),
        (
            "cpus: -1",
            "`cpus` is `-1`; a number of CPUs above zero such as 4, 0.5 or 500m is due",
            "write an amount such as 4",
        ),
        (
            "cpus: 0GB",
            "`cpus` is `0GB`; a number of CPUs above zero such as 4, 0.5 or 500m is due",
            "write an amount such as 4",
        ),
    ],
)
def test_what_an_amount_takes_is_said_by_what_it_counts(text: str, message: str, hint: str) -> None:
    found = reader(text)
    assert found.quantity(text.partition(":")[0]) is None
    assert [one.message for one in found.issues] == [message]
    assert found.issues[0].hint == hint


@pytest.mark.rule("C-080")
def test_durations_and_their_faults() -> None:
    found = reader("{a: 90s, b: 1h30m, c: 60, d: soon, e: 1.5, f: [x], g: null}")
    assert [found.seconds(key) for key in "abcdefgh"] == [90, 5400, 60, None, None, None, None, None]
    assert [one.path for one in found.issues] == ["d", "e", "f"]


def test_nothing_that_is_not_given_is_a_fault() -> None:
    found = reader("{}")
    assert (found.text("k"), found.whole("k"), found.flag("k"), found.texts("k"), found.lines("k")) == (
        None,
        None,
        None,
        (),
        (),
    )
    assert (found.quantity("k"), found.sections("k"), found.section("k").env(), found.one_of("k", ("a",))) == (
        None,
        [],
        {},
        None,
    )
    assert found.issues == []


@pytest.mark.rule("C-132")
def test_a_word_is_matched_in_any_case_and_returned_as_listed() -> None:
    found = reader("{a: PREMIUM, b: premum, c: 5}")
    words = ("Premium", "Basic")
    assert [found.one_of(key, words) for key in "abc"] == ["Premium", None, None]
    assert [(one.message, one.hint) for one in found.issues] == [
        ("`b` is `premum`; it is one of Premium, Basic", "`Premium` is the nearest word"),
        ("`c` is the number `5`; text is due", 'write "5"'),
    ]


def test_text_that_must_be_there() -> None:
    found = reader("{a: x, b: '', c: null}")
    assert [found.need_text(key, "write it") for key in "abcd"] == ["x", None, None, None]
    assert [one.message for one in found.issues] == ["`b` is empty", "`c` is missing", "`d` is missing"]


@pytest.mark.rule("C-161")
def test_an_environment_takes_values_as_written() -> None:
    found = reader("A: 010\nB: 'x'\nC: null\nD: yes\nE: |\n  a\n  b\n")
    assert found.env() == {"A": "010", "B": "x", "D": "yes", "E": "a\nb\n"}


def test_unknown_keys_without_a_near_one_list_what_is_known() -> None:
    found = reader("{zzz: 1}")
    found.unknown(("alpha", "beta"))
    assert [(one.hint, one.level.value) for one in found.issues] == [("known here: alpha, beta", "warning")]
    found.unknown(("alpha",), is_error=True)
    assert found.issues[1].is_error
