"""Ignore rules: what git says holds, byte for byte; the built-in names are final; each line is read as git reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aj.model.code import IgnoreLine
from aj.pack import ignore
from aj.pack.ignore import Folder, Rules
from tests.pack import git
from tests.pack.git import Git, Verdict

CASES = 40


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> list[Git]:
    """The repository, made by the first test that may start programs."""
    return []


def ours(data: bytes, entries: list[tuple[bytes, bool]]) -> dict[bytes, Verdict]:
    """Walk the entries as a selection does, and check the quick answers against the slow one."""
    rules = Rules(ignore.of_file(data, ".codeignore"))
    folders: dict[bytes, Folder] = {b"": rules.root()}
    found: dict[bytes, Verdict] = {}
    for path, is_folder in entries:
        above, _, name = path.rpartition(b"/")
        if above and found[above].is_out:
            found[path] = found[above]
            continue
        folder = folders[above]
        index = folder.decide(name, is_folder=is_folder)
        assert index is None or folder.may_hit(name), "a rule that decides is seen by the quick look"
        matching = [at for at, rule in enumerate(rules.all) if rule.matches(path, is_folder=is_folder)]
        assert index == max(matching, default=None)
        rule = None if index is None else rules.all[index]
        found[path] = Verdict(rule and rule.text, rule is not None and not rule.is_negative)
        if is_folder:
            folders[path] = folder.below(name)
    return found


@pytest.mark.rule("C-184", "C-262", "T12", "A-110")
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@example([b"foo**/bar", b"a**/b", b"/**/x", b"d/**", b"d/**/a", b"**/d/x", b"[[:space:]]", b"*[a-z]*[a-z]*", b"\\a"])
@example(
    [b"data/*", b"d/\n!d/a", b"d/*\n!d/a", b"*\n!*.b", b"*\n!/d/\n!a", b"a  ", b"a\\ ", b"!a\na", b"a\n!a", b"\xe9"]
)
@given(st.lists(git.pattern_file, min_size=CASES, max_size=CASES))
def test_T12_patterns_mean_what_git_makes_of_them(
    repository: list[Git], tmp_path_factory: pytest.TempPathFactory, programs: None, files: list[bytes]
) -> None:
    if not repository:
        repository.append(Git(tmp_path_factory.mktemp("git"), CASES))
    asked = repository[0]
    for data, theirs in zip(files, asked.verdicts(files)):
        assert ours(data, asked.entries) == theirs, data


@pytest.mark.rule("C-184")
def test_no_pattern_takes_exponential_time() -> None:
    for pattern in (b"*a" * 30 + b"b", b"d/" + b"*a" * 30 + b"b", b"[a-z]*" * 30 + b"0"):
        rule = ignore.parse(pattern, "f", 1)
        assert not rule.matches(b"d/" + b"a" * 250, is_folder=False)


@pytest.mark.rule("C-184")
def test_matching_is_case_sensitive() -> None:
    assert not ignore.parse(b"*.LOG", "f", 1).matches(b"a.log", is_folder=False)


@pytest.mark.rule("C-184", "C-263")
@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [(1, b"a"), (2, b"\xef\xbb\xbfb")]),
        (b"a\r\n\r\nb\r", [(1, b"a"), (3, b"b")]),
        (b"# c\n\\#c\n#", [(2, b"\\#c")]),
        (b"a  \nb\\  \n c\n  \n", [(1, b"a"), (2, b"b\\ "), (3, b" c")]),
        (b"a\0b\n", [(1, b"a")]),
        (b"d\xe9j\xe0\n", [(1, b"d\xe9j\xe0")]),
        (b"", []),
    ],
)
def test_lines_are_read_as_git_reads_them(data: bytes, found: list[tuple[int, bytes]]) -> None:
    assert list(ignore.lines(data)) == found


@pytest.mark.rule("C-183")
def test_a_template_pattern_keeps_its_place_and_may_have_several_lines() -> None:
    rules = ignore.of_template(
        [IgnoreLine("a/\n# no\nb", "base.yaml:7"), IgnoreLine("c", "leaf"), IgnoreLine(" ", "x:1")]
    )
    assert [(rule.text, rule.source, rule.line) for rule in rules] == [
        (b"a/", "base.yaml", 7),
        (b"b", "base.yaml", 9),
        (b"c", "leaf", 0),
    ]


@pytest.mark.rule("C-182", "T11", "T25", "T03")
@pytest.mark.parametrize("name", [".git", ".venv", "node_modules", "__pycache__", ".azure_jobs"])
@pytest.mark.parametrize("is_folder", [True, False])
def test_T11_built_in_names_stay_out_at_any_depth_whatever_a_negation_says(name: str, is_folder: bool) -> None:
    rules = Rules(ignore.of_file(f"!{name}\n!{name}/\n!**/{name}\n!*".encode(), ".codeignore"))
    for folder in (rules.root(), rules.root().below(b"src").below(b"deep")):
        index = folder.excluding(name.encode(), is_folder=is_folder)
        assert index is not None and rules.all[index].is_built_in


NAME = st.binary(min_size=1, max_size=8).filter(
    lambda name: name not in (b".", b"..") and not set(name) & set(b"/\0\r\n")
)


@pytest.mark.rule("C-187", "T08")
@given(st.lists(NAME, min_size=1, max_size=3).map(b"/".join), st.booleans(), NAME)
def test_T08_the_line_to_add_takes_that_path_and_no_other(path: bytes, is_folder: bool, other: bytes) -> None:
    [rule] = ignore.of_file(ignore.line_for(path, is_folder=is_folder), "f")
    assert rule.matches(path, is_folder=is_folder)
    assert rule.matches(other, is_folder=is_folder) == (other == path)
    assert not rule.matches(b"x/" + path, is_folder=is_folder)


def test_a_line_break_in_a_name_becomes_a_wildcard() -> None:
    [rule] = ignore.of_file(ignore.line_for(b"a\nb\r"), "f")
    assert rule.matches(b"a\nb\r", is_folder=False)


@pytest.mark.rule("C-184")
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(git.pattern_file)
def test_a_selection_has_the_files_that_git_would_take(
    repository: list[Git], tmp_path_factory: pytest.TempPathFactory, programs: None, data: bytes
) -> None:
    from aj.pack import walk
    from tests.pack.trees import plan

    if not repository:
        repository.append(Git(tmp_path_factory.mktemp("git"), CASES))
    tree = repository[0].base / "c0"
    (tree / ".gitignore").unlink(missing_ok=True)
    (tree / ".codeignore").write_bytes(data)
    try:
        taken = [path for path in walk.select(plan(tree)).paths if not path.endswith(b"/")]
        assert taken == repository[0].untracked(tree, data)
    finally:
        (tree / ".codeignore").unlink()


def test_the_register_of_cases_is_what_it_says(tmp_path: Path) -> None:
    found = git.entries()
    assert len({path for path, _ in found}) == len(found)
    assert all(
        path.rpartition(b"/")[0] in {b"", *(name for name, is_folder in found if is_folder)} for path, _ in found
    )
