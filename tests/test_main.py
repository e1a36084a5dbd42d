"""The door: fast answers, exit codes whatever happens, and nothing heavy in the hall."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aj.base import paths
from aj.version import VERSION
from tests.conftest import Home

pytestmark = pytest.mark.usefixtures("programs")

BREAK = (
    "import sys; from aj import main; from aj.cli import app;"
    "app.run = lambda argv: {body}; sys.exit(main.main({argv!r}))"
)
HEAVY = ("rich", "ssl", "asyncio", "urllib3", "kubernetes", "azure", "tomlkit", "filelock", "platformdirs", "email")


def broken(home: Home, body: str, argv: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the door with a command that does what it should not."""
    code = BREAK.format(body=body, argv=argv)
    env = {**home.env, **variables}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=30)


@pytest.mark.rule("C-001", "C-013")
@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_version_alone(home: Home, word: str) -> None:
    done = home.aj(word)
    assert (done.code, done.out, done.err) == (0, f"aj {VERSION}\n".encode(), b"")
    assert home.aj(word, "--json").code == 2


@pytest.mark.rule("C-013")
def test_the_version_imports_nothing(home: Home) -> None:
    look = "print(sorted(m for m in sys.modules if m[:3] == 'aj.'))"
    code = f"import sys; from aj import main; main.main(['--version']); {look}"
    done = subprocess.run([sys.executable, "-Ic", code], env=dict(home.env), capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines() == [f"aj {VERSION}", "['aj.main', 'aj.version']"]


@pytest.mark.rule("C-075", "C-058")
def test_what_nobody_expected_is_one_line_and_a_file(home: Home) -> None:
    done = broken(home, "1 / 0", ["list", "--token=abcdefgh1234", "--json"])
    assert done.returncode == 70
    first, second = done.stderr.splitlines()
    assert first == "aj: ZeroDivisionError: division by zero"
    path = Path(second.removeprefix("hint: attach ").removesuffix(" to a report"))
    report = path.read_text()
    assert path.parent == home.layout.reports
    assert "Traceback (most recent call last)" in report and "ZeroDivisionError" in report
    assert "abcdefgh1234" not in report
    error = json.loads(done.stdout)["error"]
    assert (error["message"], error["details"]["report"]) == ("ZeroDivisionError: division by zero", str(path))


@pytest.mark.rule("C-058", "C-091")
def test_a_traceback_is_for_who_asks(home: Home) -> None:
    assert "Traceback" not in broken(home, "1 / 0", ["list"]).stderr
    assert "Traceback (most recent call last)" in broken(home, "1 / 0", ["list"], AJ_DEBUG="1").stderr


@pytest.mark.rule("C-075", "C-096")
def test_a_report_needs_no_place(home: Home) -> None:
    done = broken(home, "1 / 0", ["list"], AJ_STATE_DIR="/dev/null/x")
    assert done.returncode == 70
    assert done.stderr == "aj: ZeroDivisionError: division by zero\nhint: set AJ_DEBUG=1 to see where\n"


@pytest.mark.rule("C-077")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("(_ for _ in ()).throw(KeyboardInterrupt())", 130),
        ("(_ for _ in ()).throw(BrokenPipeError())", 0),
        ("__import__('os').kill(__import__('os').getpid(), 15)", 143),
        ("5", 5),
    ],
)
def test_every_way_to_end_has_a_code(home: Home, body: str, code: int) -> None:
    done = broken(home, body, ["list"])
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.rule("C-077", "C-079")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_waiting_command(home: Home, number: int, code: int) -> None:
    home.layout.state.mkdir(parents=True)
    home.layout.daemon_log.write_text("begun\n")
    argv = [*paths.program(), "daemon", "logs", "-f"]
    child = subprocess.Popen(argv, env=dict(home.env), cwd=home.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        child.send_signal(number)
        _, err = child.communicate(timeout=10)
    assert (child.returncode, err) == (code, b"")


@pytest.mark.rule("C-064", "C-335")
@pytest.mark.parametrize("words", [("--version",), ("help",), ("config", "show"), ("help", "--json")])
def test_a_reader_that_has_gone_ends_the_command_in_silence(home: Home, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    argv = [*paths.program(), *words]
    done = subprocess.run(argv, env=dict(home.env), cwd=home.root, stdout=writing, stderr=subprocess.PIPE, timeout=30)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.rule("C-064", "C-335")
@pytest.mark.parametrize("words", ["--version", "config show", "help --json", "version nonsense --json"])
def test_a_closed_stdout(home: Home, words: str) -> None:
    argv = [*paths.program(), *words.split()]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *argv], env=dict(home.env), capture_output=True, timeout=30)
    assert done.returncode == (2 if "nonsense" in words else 0)
    assert b"Traceback" not in done.stderr


@pytest.mark.rule("C-064")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, which only Linux has")
@pytest.mark.parametrize("words", ["--version", "config show", "help --json", "completion bash"])
def test_a_full_disk_behind_stdout(home: Home, words: str) -> None:
    argv = [*paths.program(), *words.split()]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(argv, env=dict(home.env), cwd=home.root, stdout=full, stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def loaded(home: Home, *words: str) -> set[str]:
    """Return the modules that a command has loaded at its end."""
    code = (
        "import sys; from aj import main; main.main(sys.argv[1:]);"
        "sys.stderr.write('\\n' + ' '.join(m for m in sys.modules if '.' not in m))"
    )
    argv = [sys.executable, "-Ic", code, *words]
    done = subprocess.run(
        argv, env=dict(home.env), cwd=home.root / "project", capture_output=True, text=True, timeout=30
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "line",
    [
        "list",
        "queue list",
        "queue show q-00000000",
        "template list",
        "template show t",
        "config show",
        "run -d -t t true",
        "run --nope",
        "--help",
        "queue --help",
        "run --help",
        "version",
    ],
)
def test_the_hall_is_empty(home: Home, line: str) -> None:
    project = home.project()
    (project.directory / "template/t.yaml").write_text(
        "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n"
    )
    (project.root / "x").write_text("x")
    assert loaded(home, *line.split()) & set(HEAVY) == set()


@pytest.mark.rule("C-051", "T97")
@pytest.mark.parametrize("line", ["run -t ''", "queue show ''", "config get ''", "help ''", "run ''"])
def test_completion_loads_no_command_tree(home: Home, line: str) -> None:
    import shlex

    home.project()
    found = loaded(home, "__complete", *shlex.split(line))
    assert found & {*HEAVY, "cyclopts", "yaml", "json", "socket", "tempfile"} == set()


@pytest.mark.rule("C-096")
def test_without_a_home_a_place_to_stand_or_a_locale(home: Home, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    env = {"PATH": os.environ["PATH"], "LC_ALL": "POSIX", "TMPDIR": str(tmp_path)}
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    for words in (("help",), ("list",), ("daemon", "status"), ("config", "show")):
        done = subprocess.run(
            ["sh", "-c", script, "sh", *paths.program(), *words], env=env, capture_output=True, text=True, timeout=30
        )
        gone.mkdir(exist_ok=True)
        assert done.returncode in (0, 3), done.stderr
        assert "Traceback" not in done.stderr
    done = subprocess.run(
        [*paths.program(), "completion", "bash", "--install"], env=env, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "aj: HOME is not set, so there is no place for a completion script",
    )
