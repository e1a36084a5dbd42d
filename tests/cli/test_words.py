"""The words of a line: global options anywhere, own options known, the user's program untouched."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base.errors import OptionError
from aj.cli import app, bind, declare, tree, words
from aj.cli.declare import Option, Word, choice, duration, filled, whole
from aj.cli.leaf import Command
from aj.cli.words import Line


@dataclass(frozen=True)
class Run:
    """Words that are handed on, as `aj run` takes them."""

    command: Annotated[tuple[str, ...], Word("COMMAND", "the program", many=True, freezes=True)] = ()
    template: Annotated[str | None, Option("-t --template", "template", "NAME")] = None
    processes: Annotated[int, Option("-p --processes --gpn --gpus-per-node", "size", "N", whole(0, 4096))] = 1
    env: Annotated[tuple[str, ...], Option("-e --env", "variables", "K=V", repeats=True)] = ()
    dry_run: Annotated[bool, Option("-d --dry-run", "send nothing")] = False


@dataclass(frozen=True)
class Exec:
    """Words that are handed on after one of our own, as `aj exec` takes them."""

    job: Annotated[str, Word("ID", "the job", filled)]
    command: Annotated[tuple[str, ...], Word("CMD", "the program", many=True, freezes=True)] = ()
    stdin: Annotated[bool, Option("-i --stdin", "hand stdin on")] = False


@dataclass(frozen=True)
class Wait:
    """Words of our own only."""

    tickets: Annotated[tuple[str, ...], Word("TICKET", "which", many=True)] = ()
    timeout_s: Annotated[float | None, Option("--timeout", "how long", "DURATION", duration)] = None
    show: Annotated[str | None, Option("--show", "what", "WHAT", choice("argv", "files"))] = None


COMMAND = tree.COMMANDS["queue", "wait"]


def bound(options: type, line: str) -> object:
    declaration = declare.read(options)
    return bind.bind(COMMAND, options, declaration, words.take(shlex.split(line), declaration, Line()))


@pytest.mark.rule("C-015", "C-326", "C-325")
@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("-t gpu train.py -n 3 --help", Run(("train.py", "-n", "3", "--help"), template="gpu")),
        ("-d train.py --help", Run(("train.py", "--help"), dry_run=True)),
        ("-p 4 train.py -p 8", Run(("train.py", "-p", "8"), processes=4)),
        ("train.py -- x", Run(("train.py", "--", "x"))),
        ("-t gpu -- train.py -- y", Run(("train.py", "--", "y"), template="gpu")),
        ("-- --weird", Run(("--weird",))),
        ("-e A=1 -e B=2 x -e C=3", Run(("x", "-e", "C=3"), env=("A=1", "B=2"))),
        ("-dp3 x", Run(("x",), processes=3, dry_run=True)),
        ("-dp 3 x", Run(("x",), processes=3, dry_run=True)),
        ("-p=3 x", Run(("x",), processes=3)),
        ("--gpn=3 x", Run(("x",), processes=3)),
        ("-e -d x", Run(("x",), env=("-d",))),
        ("-e --json x", Run(("x",), env=("--json",))),
        ("- a", Run(("-", "a"))),
        ("'' 'a b' ''", Run(("", "a b", ""))),
        ("@file", Run(("@file",))),
        ("echo --json -h", Run(("echo", "--json", "-h"))),
        ("--template= x", Run(("x",), template="")),
        ("-t=a=b x", Run(("x",), template="a=b")),
        ("bash -c 'exit 3'", Run(("bash", "-c", "exit 3"))),
    ],
)
def test_words_from_command_on_are_handed_over(line: str, due: Run) -> None:
    assert bound(Run, line) == due


@pytest.mark.rule("C-024")
@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("ID ls -i --json", Exec("ID", ("ls", "-i", "--json"))),
        ("-i ID cat", Exec("ID", ("cat",), stdin=True)),
        ("ID -- cat -- x", Exec("ID", ("cat", "--", "x"))),
        ("ID -i", Exec("ID", ("-i",))),
        ("ID 'nvidia-smi -L'", Exec("ID", ("nvidia-smi -L",))),
        ("-- ID -x", Exec("ID", ("-x",))),
    ],
)
def test_nothing_after_the_job_is_parsed(line: str, due: Exec) -> None:
    assert bound(Exec, line) == due


@pytest.mark.rule("C-001")
@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("a --timeout 5 b --timeout 1h30m", Wait(("a", "b"), timeout_s=5400.0)),
        ("-- --timeout", Wait(("--timeout",))),
        ("--show files --show argv", Wait(show="argv")),
    ],
)
def test_the_last_of_two_holds(line: str, due: Wait) -> None:
    assert bound(Wait, line) == due


@pytest.mark.rule("C-015", "C-325", "C-001", "C-080", "C-319")
@pytest.mark.parametrize(
    ("options", "line", "message"),
    [
        (Run, "--nope x", "`--nope` is no option here"),
        (Run, "-dz x", "`-dz` is no option here"),
        (Run, "--templ x y", "`--templ` is no option here"),
        (Run, "--no-dry-run x", "`--no-dry-run` is no option here"),
        (Run, "--empty-env x", "`--empty-env` is no option here"),
        (Run, "--dry-run=1 x", "`--dry-run` takes no value"),
        (Run, "-d=1 x", "`-d` takes no value"),
        (Run, "-t", "`-t` needs a value"),
        (Run, "-p -4 x", "`--processes`: `-4` is not a whole number from 0 to 4096"),
        (Run, "-p 1_0 x", "`--processes`: `1_0` is not a whole number from 0 to 4096"),
        (Run, "-p +3 x", "`--processes`: `+3` is not a whole number from 0 to 4096"),
        (Run, "-p ٣ x", "`--processes`: `٣` is not a whole number from 0 to 4096"),
        (Run, "-p 1e3 x", "`--processes`: `1e3` is not a whole number from 0 to 4096"),
        (Run, "-p 4097 x", "`--processes`: `4097` is not a whole number from 0 to 4096"),
        (Run, "-p '' x", "`--processes`: `` is not a whole number from 0 to 4096"),
        (Run, "-V x", "`-V` stands alone"),
        (Exec, "", "ID is missing"),
        (Exec, "''", "`ID`: it is empty"),
        (Wait, "--timeout soon", "`--timeout`: `soon` is not a duration: write 90s, 30m, 2h, 1d or 1h30m"),
        (Wait, "--show all", "`--show`: `all` is none of argv, files"),
        (Wait, "-o xml", "`--output`: `xml` is none of table, json, jsonl, yaml, name"),
    ],
)
def test_a_wrong_word_is_named(options: type, line: str, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        bound(options, line)
    assert raised.value.message == message
    assert raised.value.exit_code == 2


@dataclass(frozen=True)
class One:
    """One word and no more."""

    name: Annotated[str, Word("NAME", "which")]


def test_a_word_too_many_is_named() -> None:
    with pytest.raises(OptionError, match="`y` is one word too many"):
        bound(One, "x y")


@pytest.mark.rule("C-001")
def test_one_word_with_several_ids_is_several_words() -> None:
    """zsh hands an unquoted `$ids` on as one word with newlines."""
    several = [command for command in tree.COMMANDS.values() if _takes_many_names(command)]
    assert {"wait", "terminate", "resubmit", "queue wait", "watch add", "job delete"} <= {one.name for one in several}
    for command in several:
        given = vars_of(command, Line(places=["q-1a2b3c4d\nq-5e6f7a8b\n", "x"]))
        assert ("q-1a2b3c4d", "q-5e6f7a8b", "x") in given, command.name


@pytest.mark.rule("C-002")
@pytest.mark.parametrize("places", [["a", "b"], ["a\nb"]])
@pytest.mark.parametrize("path", [("logs",), ("job", "why"), ("queue", "show"), ("job", "preempt")])
def test_where_one_id_is_due_a_second_is_told_how(path: tuple[str, ...], places: list[str]) -> None:
    command = tree.COMMANDS[path]
    with pytest.raises(OptionError, match="`b` is one word too many") as raised:
        vars_of(command, Line(places=places))
    assert str(raised.value.hint).startswith(f"one at a time: `aj {command.name}")


def test_the_words_of_a_program_are_never_taken_apart() -> None:
    assert bound(Exec, "a1 echo 'a b'").command == ("echo", "a b")  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="one word too many"):
        vars_of(tree.COMMANDS["exec",], Line(places=["a\nb", "true"]))


@pytest.mark.rule("C-015")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-o json", ["-o json"]),
        ("-ojson", ["-ojson"]),
        ("--json --json", ["--json"]),
        ("--output=yaml", ["--output"]),
        ("-d -p 2 --gpn=3", ["-d", "-p", "--gpn"]),
        ("-o model.pt --help -q -v x--dry-run", []),
        ("-- --dry-run", []),
        ("", []),
    ],
)
def test_words_of_a_program_that_are_spelled_as_ours(line: str, found: list[str]) -> None:
    assert words.behind_program(line.split(), declare.read(Run)) == found


def vars_of(command: Command, line: Line) -> list[object]:
    options = app.room(command).Options
    made = bind.bind(command, options, declare.read(options), line)
    return [getattr(made, field.name) for field in fields(options)]


def _takes_many_names(command: Command) -> bool:
    places = declare.read(app.room(command).Options).places
    return any(word.many and word.values in declare.ONE_WORD for _, word in places)


@pytest.mark.rule("C-001", "C-004")
@pytest.mark.parametrize(
    ("line", "path", "rest"),
    [
        ("queue list -s failed", ("queue", "list"), ("-s", "failed")),
        ("--json queue list", ("queue", "list"), ()),
        ("queue --json list", ("queue", "list"), ()),
        ("-o json -q queue list", ("queue", "list"), ()),
        ("-qC /tmp queue list", ("queue", "list"), ()),
        ("jl", ("job", "list"), ()),
        ("job ls", ("job", "list"), ()),
        ("job status X", ("job", "show"), ("X",)),
        ("tl", ("template", "list"), ()),
        ("queue", ("queue",), ()),
        ("", (), ()),
    ],
)
def test_the_command_is_found(line: str, path: tuple[str, ...], rest: tuple[str, ...]) -> None:
    found = words.find(shlex.split(line))
    assert (found.path, found.rest) == (path, rest)


@pytest.mark.rule("C-001")
def test_global_options_stand_anywhere_before_the_users_words() -> None:
    found = words.find(["-q", "run", "--json", "-C", "/tmp", "-t", "x", "prog", "--no-color"])
    line = words.take(found.rest, declare.read(Run), found.line)
    assert (line.found.quiet, line.found.format, line.found.directory, line.found.no_color) == (
        True,
        "json",
        "/tmp",
        False,
    )
    assert line.places == ["prog", "--no-color"]


@pytest.mark.rule("C-002", "C-342")
@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("quue", "`quue` is no command of `aj`", "`aj queue`"),
        ("queue lst", "`lst` is no command of `aj queue`", "`aj queue list`"),
        ("zzzz", "`zzzz` is no command of `aj`", "`aj --help` lists them"),
        ("- x", "`-` is no command of `aj`", "`aj --help` lists them"),
        ("-- list", "`--` is no command of `aj`", "`aj --help` lists them"),
    ],
)
def test_an_unknown_command_has_a_nearest_one(line: str, message: str, hint: str) -> None:
    with pytest.raises(OptionError) as raised:
        words.find(shlex.split(line))
    assert (raised.value.message, raised.value.hint) == (message, hint)


@pytest.mark.rule("C-002")
def test_help_is_found_behind_a_wrong_word() -> None:
    found = words.find(["queue", "nope", "-h"])
    assert found.path == ("queue",)
    assert found.line.found.help


@pytest.mark.rule("C-053")
@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("", None),
        ("--json", "json"),
        ("-o json --json", "json"),
        ("--only-ids", "name"),
        ("-o table -o yaml", "yaml"),
        ("--output=jsonl", "jsonl"),
        ("-ojson", "json"),
    ],
)
def test_the_format_that_was_asked_for(line: str, due: str | None) -> None:
    assert words.take(shlex.split(line), declare.read(Wait), Line()).found.format == due


@pytest.mark.rule("C-053")
@pytest.mark.parametrize("line", ["--json -o yaml", "--only-ids --json", "-o table --json"])
def test_two_formats_are_refused(line: str) -> None:
    with pytest.raises(OptionError, match="two formats at once"):
        _ = words.take(shlex.split(line), declare.read(Wait), Line()).found.format


@pytest.mark.rule("C-057")
@pytest.mark.parametrize(
    ("line", "otherwise", "due"),
    [
        ("run --nope --json", None, "json"),
        ("run -o yaml --nope", None, "yaml"),
        ("--output=jsonl nope", None, "jsonl"),
        ("run --nope", "json", "json"),
        ("run -- --json", None, "table"),
        ("run -o", None, "table"),
        ("run -o nonsense", None, "table"),
    ],
)
def test_the_format_of_a_wrong_line_is_guessed(line: str, otherwise: str | None, due: str) -> None:
    assert words.guess_format(shlex.split(line), otherwise) == due


@pytest.mark.rule("C-015")
@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1).filter(lambda word: not word.startswith("-")), st.lists(st.text(), max_size=5))
def test_no_word_of_the_program_is_ever_changed(first: str, rest: list[str]) -> None:
    """Whatever follows COMMAND arrives as it was typed."""
    declaration = declare.read(Run)
    line = words.take(["-d", "-t", "x", first, *rest], declaration, Line())
    assert bind.bind(COMMAND, Run, declaration, line) == Run((first, *rest), template="x", dry_run=True)
