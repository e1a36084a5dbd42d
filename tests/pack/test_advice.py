"""Warnings about patterns: each one that cannot do what its writer may think, and none about the others."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.pack import advice, ignore
from aj.pack.ignore import Rules


def about(text: str) -> list[tuple[int | None, str]]:
    rules = Rules(ignore.of_file(text.encode(), ".codeignore"))
    return [(warning.line, warning.message) for warning in advice.about(rules)]


@pytest.mark.rule("C-260")
def test_a_negation_that_cannot_act_inside_an_excluded_folder_is_told() -> None:
    [(line, message)] = about("data/\n!keep.txt")
    assert line == 2
    assert "`!keep.txt` cannot act inside `data/`" in message
    assert message.endswith(": write `data/*` in its place")


@pytest.mark.rule("C-260", "C-184")
@pytest.mark.parametrize("text", ["data/\n!data/keep.txt", "/data\n!data/keep.txt", "*\n!src/keep.py", "da*\n!data/a"])
def test_what_to_write_instead_brings_it_back(text: str) -> None:
    [(_, message)] = about(text)
    written = re.findall("`([^`]*)`", message.rpartition(": ")[2])
    first, last = text.split("\n")
    mended = "\n".join([*([] if message.endswith("in its place") else [first]), *written, last])
    assert about(mended) == []
    rules = Rules(ignore.of_file(mended.encode(), ".codeignore"))
    folder, name = last.removeprefix("!").encode().split(b"/")
    assert not is_left_out(rules, folder, name) and is_left_out(rules, folder, b"other")


def is_left_out(rules: Rules, folder: bytes, name: bytes) -> bool:
    deciding = rules.root().below(folder).decide(name, is_folder=False, built_in=True)
    return deciding is not None and not rules.all[deciding].is_negative


@pytest.mark.rule("C-260", "C-184")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("data/\n!data/keep.txt", 2, "the folder `data` is excluded by `data/`"),
        ("*\n!src/keep.py", 2, "the folder `src` is excluded by `*`"),
        ("a/**\n!a/b/c", 2, "the folder `a/b` is excluded by `a/**`"),
        ("!first\n*.log", 1, "no pattern before it excludes"),
        ("*.pyc\n!*.py", 2, "no pattern before it excludes"),
        ("x/**/y\n!z", 2, "no pattern before it excludes"),
    ],
)
def test_a_negation_without_effect_is_told(text: str, line: int, words: str) -> None:
    [(told, message)] = about(text)
    assert told == line
    assert words in message


@pytest.mark.rule("C-261", "C-184")
@pytest.mark.parametrize(
    "text",
    [
        "*\n!*.py",
        "data/*\n!data/keep.txt",
        "*\n!src/\n!src/keep.py",
        "*.log\ndata/\n!keep.log",
        "*.pyc\n!foo.py[co]",
        "foo*\n!*bar",
        "x/**/y\n!x/y",
        "x/**/y\n!y",
        "*\n!.azure_jobs/",
        "**/build\n!/build",
        "a/**\n!a/b/",
    ],
)
def test_a_negation_that_can_act_is_not_told(text: str) -> None:
    assert about(text) == []


@pytest.mark.rule("C-182")
@pytest.mark.parametrize("text", ["!.git", "*\n!**/node_modules/", "*\n!.venv/lib/x", "!.azure_jobs/template/"])
def test_a_negation_of_a_built_in_name_is_told(text: str) -> None:
    [(line, message)] = about(text)
    assert line == text.count("\n") + 1
    assert "always stays out" in message


@pytest.mark.rule("C-262")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[z-a]", "has the empty range `z-a`"),
        ("[", "has a `[` without its `]` and matches nothing"),
        ("!", "is empty and matches nothing"),
        ("foo\\", "ends in a lone `\\` and matches nothing"),
        ("[[:letters:]]", "names the unknown class `[:letters:]`"),
        ("./data", "written without `.` and `..`"),
        ("a//b", "two slashes in a row"),
        ("/", "is empty"),
        ("x[/]", "a set that no byte is in"),
    ],
)
def test_a_pattern_that_cannot_match_is_told_with_its_line(text: str, words: str) -> None:
    [(line, message)] = about("ok\n" + text)
    assert line == 2
    assert words in message


@pytest.mark.rule("C-262")
def test_an_empty_range_still_has_its_first_byte() -> None:
    rule = ignore.parse(b"[z-a]", "f", 1)
    assert [name for name in (b"a", b"m", b"z") if rule.matches(name, is_folder=False)] == [b"z"]


# Every path over a small alphabet, to try what the warnings claim for all paths.
WORDS = ["".join(letters) for size in (1, 2) for letters in itertools.product("ab", repeat=size)]
PATHS = [path.encode() for path in (*WORDS, *("/".join(two) for two in itertools.product(WORDS, repeat=2)))]
PATTERN = st.lists(st.sampled_from(["a", "b", "*", "?", "/", "**/", "[ab]"]), min_size=1, max_size=4).map("".join)


def is_out(rules: Rules, path: bytes, *, is_folder: bool) -> bool:
    folder = rules.root()
    *above, name = path.split(b"/")
    for part in above:
        if folder.excluding(part, is_folder=True) is not None:
            return True
        folder = folder.below(part)
    return folder.excluding(name, is_folder=is_folder) is not None


@pytest.mark.rule("C-260")
@settings(max_examples=80, deadline=None)
@given(st.lists(PATTERN, min_size=1, max_size=3), PATTERN)
def test_a_negation_that_is_told_has_no_effect_on_any_path(patterns: list[str], last: str) -> None:
    without = Rules(ignore.of_file("\n".join(patterns).encode(), "f"))
    negated = Rules(ignore.of_file("\n".join([*patterns, "!" + last]).encode(), "f"))
    if any(warning.line == len(patterns) + 1 for warning in advice.about(negated)):
        for path, is_folder in itertools.product(PATHS, (True, False)):
            assert is_out(negated, path, is_folder=is_folder) == is_out(without, path, is_folder=is_folder)
