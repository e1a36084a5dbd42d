"""The command line: which words run a file, and that a shell gives back exactly the same words."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aj.base import proc
from aj.base.errors import UserError
from aj.model import words
from aj.model.words import Command


def command(root: Path, *argv: str, has_uv: bool = True) -> Command:
    return words.command(argv, str(root), is_file=os.path.isfile, resolve=os.path.realpath, has_uv=has_uv)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    for name in ("train.py", "train.PY", "go.sh", "notes.txt", "tool", "-odd.py", "sub/a b.py", ".py", "weird.py/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (tmp_path / "out.py").write_text("")
    os.symlink("../out.py", root / "escape.py")
    os.symlink("train.py", root / "inner.py")
    os.symlink(root, tmp_path / "alias")
    os.mkfifo(root / "pipe.py")
    return root


@pytest.mark.rule("C-157", "C-158", "C-324")
@pytest.mark.parametrize(
    ("typed", "due", "file"),
    [
        ("train.py", "uv run train.py", "train.py"),
        ("train.PY", "uv run train.PY", "train.PY"),
        ("./train.py", "uv run ./train.py", "./train.py"),
        ("sub/a b.py", "uv run 'sub/a b.py'", "sub/a b.py"),
        ("go.sh", "bash go.sh", "go.sh"),
        ("-odd.py", "uv run ./-odd.py", "-odd.py"),
        ("inner.py", "uv run inner.py", "inner.py"),
        ("../p/train.py", "uv run train.py", "train.py"),
        ("../alias/train.py", "uv run train.py", "train.py"),
        ("tool", "tool", None),
        (".", ".", None),
        ("/bin/ls", "/bin/ls", None),
        ("escape.py", "escape.py", None),
        ("../out.py", "../out.py", None),
        ("weird.py", "weird.py", None),
        ("train.py/", "train.py/", None),
        ("pipe.py", "pipe.py", None),
        ("missing.py", "missing.py", None),
        (".py", ".py", None),
        ("python", "python", None),
        ("", "''", None),
    ],
)
def test_only_an_existing_script_inside_the_folder_runs_itself(
    tree: Path, typed: str, due: str, file: str | None
) -> None:
    found = command(tree, typed, "train.py", "--lr")
    assert words.line(found.argv) == f"{due} train.py --lr"
    assert found.file == file


@pytest.mark.rule("C-157")
def test_an_absolute_path_into_the_folder_is_written_relative_to_it(tree: Path) -> None:
    assert command(tree, str(tree / "sub/a b.py")).argv == ("uv", "run", "sub/a b.py")
    assert command(tree.parent / "alias", str(tree / "train.py")).argv == ("uv", "run", "train.py")


@pytest.mark.rule("C-157", "C-324")
def test_another_extension_names_both_ways_out(tree: Path) -> None:
    with pytest.raises(UserError) as caught:
        command(tree, "notes.txt")
    assert "only .py and .sh" in caught.value.message
    assert caught.value.hint == "`bash notes.txt` or `python notes.txt`"


@pytest.mark.rule("C-157")
def test_without_uv_python_runs_the_file_and_a_note_tells(tree: Path) -> None:
    found = command(tree, "train.py", "x", has_uv=False)
    assert found.argv == ("python3", "train.py", "x")
    assert found.notes == ("no `uv` on the job's PATH: `python3` runs the file",)
    assert command(tree, "go.sh", has_uv=False).notes == ()


@pytest.mark.rule("C-151")
def test_the_stem_is_the_files_name_alone(tree: Path) -> None:
    assert command(tree, "sub/a b.py").stem == "a b"
    assert command(tree, "tool").stem is None


@pytest.mark.rule("C-159")
def test_words_that_are_no_text_and_no_words_are_refused(tree: Path) -> None:
    with pytest.raises(UserError, match="word 2 of the command"):
        command(tree, "echo", os.fsdecode(b"\xff"))
    with pytest.raises(UserError, match="COMMAND is missing"):
        command(tree)


PRINTER = '#!/bin/sh\nprintf "%s\\0" "$0" "$@"\n'
NASTY = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
    st.text("'\"\\$`!*?[]{}()<>|&;~# \n\t=%é-a", max_size=12),
)


def split(root: Path, line: str, path: str) -> list[str]:
    """Let a shell read a line whose program prints its own words."""
    found = proc.run(["sh", "-c", f"true\n{line}"], cwd=root, env={"PATH": f"{path}:/usr/bin:/bin"}, timeout_s=20)
    assert found.code == 0, found.err
    return found.out.decode("utf-8", "surrogateescape").split("\0")[:-1]


@pytest.mark.usefixtures("programs")
@pytest.mark.rule("C-159", "T87", "T88", "T90")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NASTY, max_size=5))
@example(["", "a b", "$HOME", "*", "'", '"', "\n", "x=y", "~", "!!", "-n", "#", "é"])
def test_a_shell_gives_back_the_same_words(tmp_path: Path, argv: list[str]) -> None:
    program = tmp_path / "print words"
    if not program.exists():
        program.write_text(PRINTER)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert split(tmp_path, words.line([str(program), *argv]), str(tmp_path)) == [str(program), *argv]


@pytest.mark.usefixtures("programs")
@pytest.mark.rule("C-159")
@pytest.mark.parametrize("name", ["a b", "if", "FOO=bar", "while", "time", "{", "!", "$x", "it's", "é", "-x", "case"])
def test_a_program_of_any_name_is_run_by_its_name(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.write_text(PRINTER)
    program.chmod(0o755)
    assert split(tmp_path, words.line([name, "x"]), str(tmp_path))[1:] == ["x"]


@pytest.mark.rule("C-159")
def test_plain_words_stay_as_they_are() -> None:
    argv = ["uv", "run", "train.py", "--lr=1e-3", "a,b", "x@y", "+1", "%d", "/a/b:c"]
    assert words.line(argv) == " ".join(argv)
