"""The register of rules is well-formed, and every mark in the tests names a rule of it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.house import rules

# How many rules each family has, in the order of the register: none slips away unseen.
FAMILIES = {
    "C": 353, "A": 174, "V": 104,
    "WK": 5, "NP": 11, "BK": 26, "CB": 9, "MD": 9, "QT": 7, "LX": 6, "RS": 7, "UP": 3, "TD": 26,
    "SB": 5, "LC": 23, "DA": 5, "SP": 8, "CO": 5, "OP": 7, "AG": 17, "SC": 14, "WA": 10,
    "T": 76,
}  # fmt: skip
FORM = re.compile(r"(?:(?P<letter>[CAV])-\d\d[0-9A-Z]b?|(?P<letters>[A-Z]{2})-\d\d|(?P<trouble>T)\d{2,3})")
LONGEST = 160  # a sentence that fits a terminal beside its id, twice folded


def family(rule: str) -> str:
    form = FORM.fullmatch(rule)
    assert form is not None, f"{rule} has none of the forms C-042, C-007b, A-11A, WK-01, T04"
    return next(part for part in form.groups() if part)


def place(rule: str) -> tuple[int, int, str]:
    digits = rule.removeprefix("T")
    return list(FAMILIES).index(family(rule)), int(digits) if digits.isdecimal() else 0, rule


def test_each_rule_stands_once_and_in_order() -> None:
    heads = re.findall(r"^\[(.+)\]$", rules.REGISTER.read_text(encoding="utf-8"), re.MULTILINE)
    assert heads == list(rules.register())
    assert heads == sorted(set(heads), key=place)
    assert Counter(map(family, heads)) == FAMILIES


def test_an_entry_is_a_sentence_and_a_capability() -> None:
    entries = tomllib.loads(rules.REGISTER.read_text(encoding="utf-8"))
    assert {rule for rule, entry in entries.items() if set(entry) != {"says", "for"}} == set()
    assert {rule for rule, entry in entries.items() if entry["for"] not in rules.CAPABILITIES} == set()


def test_every_capability_has_rules() -> None:
    assert {rule.capability for rule in rules.register().values()} == set(rules.CAPABILITIES)


def test_sentences_are_one_short_line_each() -> None:
    def is_one(says: str) -> bool:
        return 20 <= len(says) <= LONGEST and says == " ".join(says.split()) and not says.endswith(".")

    assert {rule: entry.says for rule, entry in rules.register().items() if not is_one(entry.says)} == {}


def test_no_two_rules_say_the_same() -> None:
    counts = Counter(entry.says.casefold() for entry in rules.register().values())
    assert [says for says, count in counts.items() if count > 1] == []


def test_every_mark_names_a_rule_of_the_register() -> None:
    known = rules.register()
    assert {rule: tests for rule, tests in rules.named().items() if rule not in known} == {}


def test_every_mark_writes_its_ids_out() -> None:
    assert [mark.where for mark in rules.marks() if mark.rule is None] == []


def test_every_mark_stands_on_something_that_is_collected() -> None:
    def is_collected(node: str) -> bool:
        _, *scopes = node.split("::")
        return not scopes or scopes[0].startswith(("test", "Test"))

    assert [(mark.where, mark.node) for mark in rules.marks() if not is_collected(mark.node)] == []


SAMPLE = """
import pytest
from pytest import mark

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.rule("C-001")]
CASES = [pytest.param(1, marks=pytest.mark.rule("C-002"))]

@pytest.mark.rule("C-003", "C-004")
def test_one(): ...

@mark.rule("C-005")
class TestTwo:
    pytestmark = pytest.mark.rule("C-006")

    @pytest.mark.parametrize("x", [pytest.param(1, marks=[pytest.mark.rule("C-003")])])
    async def test_three(self, x): ...

@pytest.mark.rule(NAME, "C-00" + "7")
@pytest.mark.rule()
def test_four(): ...

alias = pytest.mark.rule
text = 'pytest.mark.rule("C-008")'
found = node.rule("C-009")
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder of tests that marks in every way there is."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_sample.py").write_text(SAMPLE)
    return folder


def test_marks_are_found_wherever_pytest_takes_them(sample: Path) -> None:
    at = "tests/test_sample.py"
    assert rules.named(sample) == {
        "C-001": [at],
        "C-002": [at],
        "C-003": [f"{at}::test_one", f"{at}::TestTwo::test_three"],
        "C-004": [f"{at}::test_one"],
        "C-005": [f"{at}::TestTwo"],
        "C-006": [f"{at}::TestTwo"],
    }


def test_a_mark_that_hides_its_ids_is_found_too(sample: Path) -> None:
    hidden = [(mark.node.rpartition("::")[2], mark.where) for mark in rules.marks(sample) if mark.rule is None]
    assert hidden == [
        ("test_four", "tests/test_sample.py:18"),
        ("test_four", "tests/test_sample.py:18"),
        ("test_four", "tests/test_sample.py:19"),
        ("tests/test_sample.py", "tests/test_sample.py:22"),
    ]


def test_missing_are_the_rules_that_no_test_names(sample: Path) -> None:
    path = sample / "rules.toml"
    path.write_text(
        '[C-001]\nsays = "one"\nfor = "house"\n'
        '[C-008]\nsays = "eight"\nfor = "offline"\n'
        '[C-010]\nsays = "ten"\nfor = "house"\n'
    )
    assert rules.missing(tests=sample, path=path) == [("C-008", "eight"), ("C-010", "ten")]
    assert rules.missing("house", tests=sample, path=path) == [("C-010", "ten")]
    assert rules.missing("azure", tests=sample, path=path) == []


def test_an_unknown_capability_is_told_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no capability called hous .*offline"):
        rules.missing("hous")
