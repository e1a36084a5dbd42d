"""Why a path is in or out: source, line and pattern, for any path, and never otherwise than the selection itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from aj.base.errors import UserError
from aj.pack import walk
from aj.pack.explain import Explanation, explain
from tests.pack import git
from tests.pack.trees import Link, plan, plant


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explain")
    plant(root, {path + b"/" * is_folder: b"" for path, is_folder in git.entries()})
    return plant(root, {".azure_jobs/scripts/run.sh": "", ".azure_jobs/account/x": "", ".git/config": ""})


@pytest.mark.rule("C-188", "T22", "T03")
def test_T22_the_deciding_source_line_and_pattern_are_told(tree: Path) -> None:
    (tree / ".codeignore").write_bytes(b"# first\n*.b\n!/a.b\n")
    try:
        found = explain(
            plan(tree, "d/", "x/d"), ["foo", "a.b", "x/a.b", "d/a", "d", "x/d/new", ".git/config", "gone.b"]
        )
    finally:
        (tree / ".codeignore").unlink()
    assert found == [
        Explanation("foo", True),
        Explanation("a.b", True, ".codeignore", 3, "!/a.b"),
        Explanation("x/a.b", False, ".codeignore", 2, "*.b"),
        Explanation("d/a", False, "t.yaml", 1, "d/", folder="d"),
        Explanation("d", False, "t.yaml", 1, "d/"),
        Explanation("x/d/new", False, "t.yaml", 2, "x/d", folder="x/d"),
        Explanation(".git/config", False, "built-in", None, ".git", folder=".git"),
        Explanation("gone.b", False, ".codeignore", 2, "*.b"),
    ]


@pytest.mark.rule("C-188")
def test_a_missing_path_counts_as_a_file_unless_it_ends_in_a_slash(tree: Path) -> None:
    [file, folder] = explain(plan(tree, "new/"), ["new", "new/"])
    assert (file.included, folder.included) == (True, False)


@pytest.mark.rule("C-188", "C-182")
def test_the_scripts_of_the_project_are_the_exception(tree: Path) -> None:
    paths = [".azure_jobs", ".azure_jobs/scripts", ".azure_jobs/scripts/run.sh", ".azure_jobs/account/x"]
    assert [found.included for found in explain(plan(tree), paths)] == [True, True, True, False]
    assert [found.source for found in explain(plan(tree, "*.sh"), paths)] == [
        "default",
        "default",
        "t.yaml",
        "built-in",
    ]


@pytest.mark.rule("C-188")
def test_paths_may_be_absolute_and_unclean_but_not_outside(tree: Path) -> None:
    [one, two, whole] = explain(plan(tree, "d"), [str(tree / "d/a"), "./x/../d//a", "."])
    assert (one.path, two.path, whole.path) == ("d/a", "d/a", ".")
    assert (one.included, two.included, whole.included) == (False, False, True)
    for path in ("..", "../x", "/etc/passwd", "d/../../x"):
        with pytest.raises(UserError, match="is not in the code root"):
            explain(plan(tree), [path])


@pytest.mark.rule("C-188")
def test_what_lies_beyond_a_link_is_not_packed(root: Path) -> None:
    plant(root, {"d/x": "", "l": Link("d")})
    assert explain(plan(root), ["l", "l/x"]) == [
        Explanation("l", True),
        Explanation("l/x", False, "link", folder="l"),
    ]


@pytest.mark.rule("C-188", "C-181")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(git.pattern_file)
def test_an_explanation_never_differs_from_the_selection(tree: Path, data: bytes) -> None:
    chosen = plan(tree, data.decode("latin-1").encode("latin-1").decode("utf-8", "surrogateescape"))
    selection = walk.select(chosen)
    paths = [
        *(path for path, _ in git.entries()),
        b".azure_jobs",
        b".azure_jobs/scripts",
        b".azure_jobs/scripts/run.sh",
    ]
    names = [path.decode("utf-8", "surrogateescape") for path in paths]
    for path, found in zip(paths, explain(chosen, names)):
        assert found.included == selection.has(path), (path, found)
