"""The command line as a whole: help, formats, errors, exit codes."""

from __future__ import annotations

import re

import pytest

from aj.cli import leaf, tree
from aj.cli.leaf import Command
from tests.cli.conftest import Shell
from tests.conftest import Home


@pytest.mark.rule("C-001", "C-002", "C-067")
@pytest.mark.parametrize("words", [(), ("-h",), ("--help",), ("-q", "--help"), ("help",)])
def test_the_help_of_everything(outside: Shell, words: tuple[str, ...]) -> None:
    seen = outside(*words)
    assert seen.code == 0
    assert seen.out.startswith("aj: submit and run jobs from one file\n\nUsage: aj COMMAND\n")
    assert seen.err == ""


@pytest.mark.rule("C-003", "C-004")
def test_headings_stand_in_their_order_and_aliases_nowhere(outside: Shell) -> None:
    page = outside("--help").out
    places = [page.index(f"\n{heading}:\n") for heading in leaf.HEADINGS if list(tree.under(heading))]
    shown = {name for heading in leaf.HEADINGS for name, _ in tree.under(heading)}
    assert shown == {path[:1] for path in (*tree.COMMANDS, *tree.GROUPS)}, "no first word is left out"
    assert places == sorted(places)
    listed = {line.split()[0] for line in page.splitlines() if line.startswith("  ")}
    assert listed.isdisjoint({"tl", "jl", "js", "jc", "jlogs", "ls"})


@pytest.mark.rule("C-002")
@pytest.mark.parametrize("path", list(tree.COMMANDS), ids=" ".join)
def test_every_command_has_a_whole_page(outside: Shell, path: tuple[str, ...]) -> None:
    page = outside(*path, "-h")
    assert page.code == 0
    command = tree.COMMANDS[path]
    assert page.out.startswith(f"aj {command.name}: {command.says}\n\nUsage: aj {command.name}")
    for heading in ("Examples", "Everywhere", "Exit codes"):
        assert f"\n{heading}:\n" in page.out
    for code in (0, 1, *command.exits, 70):
        assert f"\n  {code:<3}".rstrip() in page.out
    assert page.out == outside("help", *path).out


@pytest.mark.rule("C-002", "C-012")
@pytest.mark.parametrize("path", list(tree.GROUPS), ids=" ".join)
def test_a_group_alone_prints_its_commands(outside: Shell, path: tuple[str, ...]) -> None:
    seen = outside(*path, *(["--help"] if path in tree.COMMANDS else []))  # some do something by themselves
    assert seen.code == 0
    assert [line.split()[0] for line in seen.out.split("Commands:\n")[1].split("\n\n")[0].splitlines()] == (
        tree.children(path)
    )


@pytest.mark.rule("C-002", "C-012", "C-342")
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("quue",), "`aj queue`"),
        (("queue", "lst"), "`aj queue list`"),
        (("help", "qeue"), "`aj help queue`"),
        (("help", "exit-code"), "`aj help exit-codes`"),
        (("help", "queue", "lst"), "`aj help queue list`"),
        (("list", "--limt", "3"), "`--limit`"),
        (("docs", "templat"), "`aj docs templates`"),
        (("schema", "queue", "lst"), "`aj queue list`"),
    ],
)
def test_a_wrong_word_has_the_nearest_right_one(outside: Shell, words: tuple[str, ...], hint: str) -> None:
    seen = outside(*words, "--json")
    assert seen.code == 2
    assert seen.err.splitlines()[-1] == f"hint: {hint}"
    assert seen.json["error"]["type"] == "OptionError"


@pytest.mark.rule("C-012")
@pytest.mark.parametrize("topic", list(tree.TOPICS))
def test_topics(outside: Shell, topic: str) -> None:
    seen = outside("help", topic)
    assert seen.code == 0
    assert len(seen.out) > 200
    assert outside("help", topic, "--json").json["topic"] == topic


@pytest.mark.rule("C-095", "C-088", "C-090", "C-091", "C-092", "C-093", "C-094")
def test_the_topic_of_the_environment_tells_every_variable_that_is_read(outside: Shell) -> None:
    from aj.base import settings

    listed = {line.split()[0] for line in outside("help", "environment").out.splitlines() if line.startswith("  ")}
    assert {*settings.OURS, *settings.FOREIGN} <= listed


@pytest.mark.rule("C-013")
def test_version(outside: Shell) -> None:
    from aj.version import VERSION

    assert outside("version").out == f"aj {VERSION}\n"
    assert outside("version", "-v").out.startswith(f"aj {VERSION}\nbuild installed package\npython 3.")
    assert outside("version", "--json").json["item"]["version"] == VERSION


@pytest.mark.rule("C-053")
def test_a_format_that_a_command_cannot_give(outside: Shell) -> None:
    seen = outside("version", "-o", "name")
    assert (seen.code, seen.out) == (2, "")
    assert seen.err == "aj: no `-o name` here\nhint: one of table, json, jsonl, yaml\n"


@pytest.mark.rule("C-053", "C-091")
def test_the_format_comes_from_option_variable_setting_default(aj: Shell) -> None:
    assert aj("list").out == ""
    assert aj("config", "set", "output", "json").code == 0
    assert aj("list").json["kind"] == "journal.list"
    assert aj("list", AJ_OUTPUT="yaml").out.startswith("schema_version: 1\n")
    assert aj("list", "-o", "jsonl", AJ_OUTPUT="yaml").out == ""
    assert aj("version", AJ_OUTPUT="name").out.startswith("aj ")  # a wish that cannot be met is no error
    wrong = aj("list", AJ_OUTPUT="xml")
    assert wrong.code == 2
    assert "AJ_OUTPUT" in wrong.err


@pytest.mark.rule("C-001")
def test_the_directory_is_chosen_before_or_after(aj: Shell, outside: Shell) -> None:
    aj.template("only", "base:\nconfig: {target: {service: local}, jobs: [{}]}\n")
    assert outside("template", "list", "-C", str(aj.directory), "-o", "name").out == "only\n"
    missing = outside("-C", "no/such", "list")
    assert (missing.code, missing.err) == (2, "aj: -C no/such: no such directory\n")


@pytest.mark.rule("C-081")
def test_without_a_project_one_is_told_how_to_make_it(outside: Shell) -> None:
    for words in (("template", "list"), ("config", "set", "color", "auto"), ("run", "-t", "x", "true")):
        seen = outside(*words)
        assert seen.code == 2
        assert seen.err.endswith("hint: `aj init local` makes one\n")
    for words in (("list",), ("queue", "list"), ("config", "show"), ("code", "stats")):
        assert outside(*words).code == 0


@pytest.mark.rule("C-086", "C-329", "C-058")
def test_a_broken_file_of_settings(aj: Shell) -> None:
    file = aj.write(".azure_jobs/aj.toml", "template = \n")
    assert aj("list").err.startswith("aj: .azure_jobs/aj.toml:1:12: not TOML")
    for words in (("template", "list"), ("config", "show"), ("run", "true")):
        seen = aj(*words, "--json")
        assert seen.code == 2
        assert seen.err.startswith("aj: .azure_jobs/aj.toml:1:12: not TOML")
        assert seen.json["error"]["details"]["line"] == 1
    for words in (("help",), ("version",), ("config", "path"), ("daemon", "stop"), ("completion", "bash"), ("schema",)):
        assert aj(*words).code == 0
    assert file.read_text() == "template = \n"


@pytest.mark.rule("C-085")
def test_a_wrong_value_disturbs_only_who_needs_it(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", 'timezone = "Mars/X"\n[dashboard]\npage_size = "many"\n')
    assert aj("list").code == 0
    assert aj("config", "get", "color").out == "auto\n"
    seen = aj("config", "get", "dashboard.page_size")
    assert seen.code == 2
    assert seen.err.startswith(".azure_jobs/aj.toml:3") or "aj.toml:3" in seen.err


@pytest.mark.rule("C-051b")
def test_the_schema_of_a_command_is_a_schema(outside: Shell) -> None:
    import jsonschema

    from aj.view import schema

    assert set(schema.KINDS) >= {command.kind for command in tree.COMMANDS.values() if command.kind}
    listed = outside("schema", "--json").json
    kinds = {item["command"]: item["kind"] for item in listed["items"]}
    assert set(kinds) == {command.name for command in tree.COMMANDS.values() if command.kind}
    for kind in schema.KINDS:
        jsonschema.Draft202012Validator.check_schema(schema.whole(kind))
    for command in ("queue list", "run", "daemon stop"):
        found = outside("schema", *command.split()).json
        assert found["title"] == kinds[command]
        assert outside("schema", *command.split(), "--json").json == found
    assert outside("schema", "error").json["title"] == "error"
    assert outside("schema", "exec").code == 2


@pytest.mark.rule("C-011", "AG-16")
def test_docs_are_packaged(outside: Shell) -> None:
    listed = outside("docs").rows
    assert listed[0][0] == "start"
    for topic, title in listed:
        page = outside("docs", topic)
        assert page.out.startswith(f"# {title}\n")
    assert all(f"# {title}\n" in outside("docs", "--all").out for _, title in listed)


@pytest.mark.rule("C-002")
@pytest.mark.parametrize(
    ("path", "example"), [(command.path, line) for command in tree.COMMANDS.values() for line in command.examples]
)
def test_every_example_can_be_typed(path: tuple[str, ...], example: str) -> None:
    """The words of an example are those of its command, and its options exist."""
    import shlex

    from aj.cli import app, bind, declare, words

    line = example.removeprefix('eval "$(').removesuffix(')"').partition(" && echo")[0].partition(" < ")[0]
    line = re.sub(r"\$\(.*\)", "1a2b3c4d", line)  # what another command prints
    typed = shlex.split(line)
    assert typed[0] == "aj"
    found = words.find(typed[1:])
    assert found.path == path
    options = app.room(tree.COMMANDS[path]).Options
    declaration = declare.read(options)
    bound = bind.bind(tree.COMMANDS[path], options, declaration, words.take(found.rest, declaration, found.line))
    assert isinstance(bound, options)


@pytest.mark.rule("C-096", "C-290")
@pytest.mark.parametrize("name", ["p 5 ü", "a'b\"c", "new\nline", "%2F", "-x"])
def test_odd_folders(home: Home, name: str) -> None:
    folder = home.root / name
    folder.mkdir()
    shell = Shell(home, folder)
    assert shell("init", "local", "-y").code == 0
    assert shell("template", "validate").out == "local: ok\n"
    assert shell("run", "-d", "--json", "train.py").json["item"]["code"]["files"] == 1
    assert shell("config", "path", "--json").json["items"][0]["file"] == str(folder / ".azure_jobs/aj.toml")


@pytest.mark.rule("T99", "C-055", "C-053", "AG-01")
@pytest.mark.parametrize("command", tree.COMMANDS.values(), ids=lambda command: command.name)
def test_every_command_speaks_json_or_prints_what_is_no_document(command: Command) -> None:
    """Those without JSON print the bytes of something else: a program, a log, a script."""
    bytes_of_others = {"exec", "daemon logs", "completion"}
    assert ("json" in command.formats) == (command.name not in bytes_of_others)
    assert bool(command.kind) == (command.name not in {*bytes_of_others, "wait", "watch listen", "schema"})


@pytest.mark.rule("T74", "C-067", "C-068", "C-069", "C-070", "C-071", "C-072", "C-073", "C-074", "C-075", "C-076")
def test_every_code_is_told_in_one_table(outside: Shell) -> None:
    from aj.base import errors
    from aj.cli import page

    for command in tree.COMMANDS.values():
        assert set(command.exits) <= set(page.EXIT_CODES)
        assert 2 in command.exits
    assert {kind.exit_code for kind in errors.KINDS} <= set(page.EXIT_CODES)
    listed = {line.split()[0] for line in outside("help", "exit-codes").out.splitlines()}
    assert listed == {str(code) for code in page.EXIT_CODES}


@pytest.mark.rule("C-096", "C-068")
@pytest.mark.parametrize("line", ["list", "queue list", "queue show q-00000000", "job list", "run -d -t t true"])
def test_what_the_system_refuses_is_told_with_its_path(aj: Shell, line: str) -> None:
    aj.template("t", "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n")
    blocked = aj.write("a-file", "x")
    seen = aj(*line.split()[:1], "--json", *line.split()[1:], AJ_STATE_DIR=str(blocked))
    assert seen.code in (1, 7)
    assert str(blocked) in seen.err
    assert "Traceback" not in seen.err


@pytest.mark.rule("C-001", "C-002")
def test_pages_of_help_say_what_a_newcomer_asks(outside: Shell) -> None:
    page = outside("help", "run").out
    assert "\n  -e, --env K=V  " in page
    assert "...  " not in page
    assert "GPUs of a node (G SKU), or the size tier (C SKU)" in page
    page = " ".join(page.split())
    assert page.count("may be given again") == 4
    assert "taken literally: no quotes, no expansion" in page
    assert "(what the job does then: `aj wait`)" in outside("help", "queue", "wait").out
    for topic in tree.TOPICS:
        assert f"\n  {topic} " in outside("help").out
