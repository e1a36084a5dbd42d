"""A mistyped script is told with the file that was meant, before anything is sent."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from aj.base.errors import UserError
from aj.template import script
from tests.template.kit import LOCAL, SING, built
from tests.template.test_build import request


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    for name in ("train.py", "go.sh", "train.txt", "sub/eval.py", "bin/found.py", "folder.py/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / "bin/found.py").chmod(0o755)
    (tmp_path / "train.py").write_text("")
    os.symlink("../train.py", root / "escape.py")
    os.symlink("/bin/sh", root / "bin/tool")
    return root


def told(root: Path, word: str, *, path: str | None, may_be_made: bool = False) -> str:
    found = script.check((word, "--lr"), root, path=path, may_be_made=may_be_made)
    assert all((one.level.value, one.code) == ("warning", "no-such-file") for one in found)
    return "".join(one.message for one in found)


@pytest.mark.rule("C-157")
@pytest.mark.parametrize(
    ("word", "due"),
    [
        ("trian.py", "there is no file `trian.py` in {root}; the nearest is `train.py`"),
        ("TRIAN.PY", "there is no file `TRIAN.PY` in {root}; the nearest is `train.py`"),
        ("og.sh", "there is no file `og.sh` in {root}; the nearest is `go.sh`"),
        ("sub/evla.py", "there is no file `sub/evla.py` in {root}; the nearest is `sub/eval.py`"),
        ("./trian.py", "there is no file `./trian.py` in {root}; the nearest is `./train.py`"),
        ("nowhere/x.py", "there is no file `nowhere/x.py` in {root}"),
        ("zzzzzzzzzz.py", "there is no file `zzzzzzzzzz.py` in {root}"),
        ("trian.ipynb", "there is no file `trian.ipynb` in {root}; the nearest is `train.py`"),
        ("bin/fuond", "there is no file `bin/fuond` in {root}; the nearest is `bin/found.py`"),
        ("./run", "there is no file `./run` in {root}"),
        ("model.R", "there is no file `model.R` in {root}"),
        ("sub/", "`sub/` is not a regular file"),
        ("../go", "there is no file `../go` in {root}"),
        ("python sub/train.py", "there is no file `python sub/train.py` in {root}"),
        ("folder.py", "`folder.py` is not a regular file"),
        ("../train.py", "`../train.py` lies outside of {root}, the directory that is sent: it resolves to {out}"),
        ("escape.py", "`escape.py` lies outside of {root}, the directory that is sent: it resolves to {out}"),
    ],
)
def test_a_script_that_does_not_travel_is_refused_here_and_told_elsewhere(tree: Path, word: str, due: str) -> None:
    words = due.format(root=tree, out=tree.parent / "train.py")
    with pytest.raises(UserError) as caught:
        script.check((word,), tree, path="/nowhere", may_be_made=False)
    assert (caught.value.message, caught.value.code) == (words, "no-such-file")
    assert told(tree, word, path=None) == words
    assert told(tree, word, path="/nowhere", may_be_made=True) == words


@pytest.mark.rule("C-157")
@pytest.mark.parametrize(
    "word", ["train.py", "./sub/eval.py", "python", "trian", "train.txt", "python3.11", "bin/tool", "-c", ""]
)
def test_other_words_are_left_alone(tree: Path, word: str) -> None:
    assert script.check((word,), tree, path="", may_be_made=False) == []
    assert script.check((), tree, path=None, may_be_made=False) == []


@pytest.mark.rule("C-157")
def test_a_program_of_that_name_runs(tree: Path) -> None:
    program = str(tree / "bin/found.py")
    assert told(tree, "found.py", path=f"/nowhere:{tree / 'bin'}") == ""
    assert told(tree.parent, program, path="/nowhere") == ""
    with pytest.raises(UserError, match="lies outside of"):
        script.check((str(tree.parent / "train.py"),), tree, path="/bin", may_be_made=False)
    assert told(tree, "/workspace/train.py", path=None) == ""


@pytest.mark.rule("C-157")
def test_a_shell_line_in_one_word_is_told_how(tree: Path) -> None:
    with pytest.raises(UserError) as caught:
        script.check(("python sub/train.py --lr 1",), tree, path="/bin", may_be_made=False)
    assert str(caught.value.hint).startswith("a shell line is `bash -c 'python sub/train.py --lr 1'`")


@pytest.mark.rule("C-157")
def test_the_build_tells(tree: Path) -> None:
    asked = replace(request(tree, "trian.py"), caller={"PATH": str(tree / "bin")})
    with pytest.raises(UserError, match=r"`trian\.py` .* nearest is `train\.py`"):
        built(tree, LOCAL, request=asked)
    assert built(tree, LOCAL, request=replace(asked, argv=("found.py",))).warnings == ()
    for text in (SING, f"{LOCAL}  environment: {{setup: [make trian.py]}}\n", f"{LOCAL}    command: [make trian.py]\n"):
        found = built(tree, text, request=asked)
        assert [one.code for one in found.warnings] == ["no-such-file"]
