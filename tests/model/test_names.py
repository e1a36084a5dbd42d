"""Names: their forms, that the id stays whole, and room for what a cluster adds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.model import names

ID = "0a1b2c3d"
PLAIN = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,254}\Z")
DNS = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
BASES = st.one_of(st.text(max_size=300), st.text("aZ0-_ ./Ü中", max_size=300))
TASKS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True), st.integers(1, 10**5), min_size=1, max_size=4
)


@pytest.mark.rule("C-300", "C-152", "C-153", "A-120")
@pytest.mark.parametrize(
    ("word", "plain", "dns"),
    [
        ("train", "train", "train"),
        ("../x", "x", "x"),
        ('Ünïcode "q"', "Unicode-q", "unicode-q"),
        ("123", "123", "j-123"),
        ("a  b//c", "a-b-c", "a-b-c"),
        ("_-x-_", "x", "x"),
        ("中文", "job", "job"),
        ("--", "job", "job"),
        ("My_Job", "My_Job", "my-job"),
        ("ﬁne", "fine", "fine"),
        ("İx", "Ix", "ix"),
    ],
)
def test_words_become_names(word: str, plain: str, dns: str) -> None:
    assert names.plain(word, ID) == f"{plain}_{ID}"
    assert names.dns(word, ID, limit=48) == f"{dns}-{ID}"


@pytest.mark.rule("C-300", "C-152")
def test_a_long_word_is_cut_and_the_id_is_kept() -> None:
    assert names.plain("x" * 300, ID) == "x" * 246 + f"_{ID}"
    assert names.dns("x" * 300, ID, limit=48) == "x" * 39 + f"-{ID}"
    assert names.dns("x" * 38 + "-y", ID, limit=48) == "x" * 38 + f"-{ID}"


@pytest.mark.rule("C-152", "A-120")
@settings(max_examples=120, deadline=None)
@given(BASES)
def test_every_plain_name_has_the_form_and_is_stable(word: str) -> None:
    found = names.plain(word, ID)
    assert PLAIN.match(found)
    assert names.is_plain(found)
    assert found.endswith(f"_{ID}")
    assert names.plain(found.removesuffix(f"_{ID}"), ID) == found


@pytest.mark.rule("C-153", "C-154", "V-025", "V-026", "T78", "T79")
@settings(max_examples=120, deadline=None)
@given(BASES, TASKS)
def test_every_dns_name_has_the_form_and_leaves_room(word: str, tasks: dict[str, int]) -> None:
    limit, _ = names.stem_limit(tasks)
    if not names.has_room(limit):
        return
    found = names.dns(word, ID, limit=limit)
    assert DNS.match(found)
    assert names.is_dns(found)
    assert found.endswith(f"-{ID}")
    for task, replicas in tasks.items():
        assert len(f"{found}-xxxxx-{task}-{replicas - 1}") <= 63
    assert names.dns(found.removesuffix(f"-{ID}"), ID, limit=limit) == found


@pytest.mark.rule("C-154", "V-026")
def test_the_room_is_what_the_longest_task_leaves() -> None:
    assert names.stem_limit({"master": 1, "worker": 10}) == (48, "master")
    assert names.stem_limit({"master": 1, "worker": 11}) == (47, "worker")
    assert names.stem_limit({"master": 1}) == (48, "master")
    limit, task = names.stem_limit({"master": 1, "w" * 45: 2})
    assert (limit, task) == (9, "w" * 45)
    assert not names.has_room(limit)
    assert names.has_room(10)
    assert names.dns("train", ID, limit=10) == f"t-{ID}"
    assert names.dns("123", ID, limit=10) == f"j-{ID}"


@pytest.mark.rule("C-151", "C-089")
def test_a_name_grows_from_the_chosen_word_or_the_folder() -> None:
    assert names.base("chosen", "folder", "stem") == "chosen"
    assert names.base("  ", "folder", "stem") == "folder_stem"
    assert names.base(None, "folder", None) == "folder"


@pytest.mark.rule("C-149")
def test_an_id_is_drawn_until_it_is_free() -> None:
    drawn = iter([b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\3"])
    assert names.draw(lambda word: word in ("00000001", "00000002"), lambda size: next(drawn)) == "00000003"
    assert names.is_id(names.draw(lambda _: False))
    assert names.draw(lambda _: False) != names.draw(lambda _: False)
    assert [names.is_id(word) for word in ("0a1b2c3d", "0A1B2C3D", "0a1b2c3", "0a1b2c3d\n", "0a1b2c3g")] == [True] + [
        False
    ] * 4


@pytest.mark.rule("C-087")
def test_experiments_have_one_form() -> None:
    assert all(names.is_experiment(word) for word in ("aj", "a", "0", "A_b-c", "x" * 255))
    assert not any(names.is_experiment(word) for word in ("", "-x", "_x", "a b", "x" * 256, "x\n", "ü"))
