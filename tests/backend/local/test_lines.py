"""A line that fails is named, whatever the lines are, and what they mean stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aj.backend.local import lines


def run(folder: Path, *items: str, shell: str = "/bin/bash") -> tuple[int, tuple[int, str] | None]:
    """Run lines; return the exit code and what is known of the one that failed."""
    (folder / "sourced.sh").write_text("true\nfalse\n")
    mark = folder / "it's a mark"
    script = lines.script(items, shell, str(mark))
    found = subprocess.run([shell, "-c", script], cwd=folder, capture_output=True, timeout=20, check=False)
    return found.returncode, lines.failed(str(mark), items)


@pytest.mark.usefixtures("programs")
@pytest.mark.rule("C-160")
@pytest.mark.parametrize(
    ("items", "code", "line"),
    [
        (("true", "false", "true"), 1, 2),
        (("true", "(exit 41)"), 41, 2),
        (("no-such-program -r x",), 127, 1),
        (("true", "x=$(false)"), 1, 2),
        (("set -o pipefail", "false | true"), 1, 2),
        (("true", ". ./sourced.sh"), 1, 2),
        (("f() { true; exit 8; }", "true", "f"), 8, 3),
        (("if true", "then false", "fi"), 1, 2),
        (("cat <<X\na\nb\nX", "true \\", "&& false"), 1, 3),
        (("exit 3",), 3, None),
        (("trap true EXIT", "false"), 1, None),
        (("set +e", "false", "set -e", "exit 2"), 2, None),
        (("if false; then true; fi", "! true", "false || true", "# nothing"), 0, None),
    ],
)
def test_the_line_that_fails(tmp_path: Path, items: tuple[str, ...], code: int, line: int | None) -> None:
    found = run(tmp_path, *items)
    assert found == (code, None if line is None else (line, items[line - 1].partition("\n")[0]))


@pytest.mark.usefixtures("programs")
def test_another_shell_runs_the_same_lines_and_cannot_tell(tmp_path: Path) -> None:
    assert run(tmp_path, "true", "(exit 4)", shell="/bin/sh") == (4, None)


def test_a_secret_in_a_line_is_masked_and_a_long_one_is_cut(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.write_text("2\n")
    assert lines.failed(str(mark), ["pip install --token s3cr3t"]) == (1, "pip install --token ***")
    assert lines.failed(str(mark), ["x" * 999]) == (1, "x" * lines.SHOWN)
    mark.write_text("9\n")
    assert lines.failed(str(mark), ["x"]) is None
