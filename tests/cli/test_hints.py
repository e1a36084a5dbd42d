"""What a wrong word is told: the word of ours that says the same, or one that is really near."""

from __future__ import annotations

import pytest

from aj.cli import hints, tree, words
from tests.cli.conftest import Shell


@pytest.mark.rule("C-002")
@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("ls", "`aj list`"),
        ("submit", "`aj run`"),
        ("kill", "`aj terminate`"),
        ("rm", "`aj job delete`"),
        ("ps", "`aj status`"),
        ("tail", "`aj logs`"),
        ("ssh", "`aj exec`"),
        ("queue rm", "`aj queue cancel`"),
        ("temlate list", "`aj template`"),
        ("frobnicate", "`aj --help` lists them"),
        ("run --weird x", "`--help` lists the options"),
        ("run --templ x", "`--template`"),
        ("run --name x y", "the name comes from the environment: `AJ_NAME=NAME aj run ...`"),
        ("logs -n 5 x", "`--tail N`"),
        ("logs --lines 5 x", "`--tail N`"),
        ("code --top 3", "`aj code stats --top`"),
        ("queue -s failed", "`aj queue list -s`"),
        ("-t local run x", "options of a command stand behind its name"),
        ("queue --zzz", "`--help` lists the options"),
        ("help rm", "`aj help job delete`"),
        ("help rnu", "`aj help run`"),
        ("rnu x", "`aj run`"),
        ("wiat x", "`aj wait`"),
        ("help exit-coeds", "`aj help exit-codes`"),
        ("code --json=1", None),
    ],
)
def test_the_hint_of_a_wrong_word(outside: Shell, typed: str, hint: str | None) -> None:
    seen = outside(*typed.split(), "--json")
    assert (seen.code, seen.json["error"]["hint"]) == (2, hint)


@pytest.mark.rule("C-002")
def test_every_hint_names_something_that_is_there() -> None:
    for path, table in hints.COMMANDS.items():
        assert path in tree.GROUPS or path == ()
        for typed, meant in table.items():
            assert tree.resolve((*path, typed)) is None or (*path, typed) in tree.ALIASES, "a word that works"
            assert words.find(meant.split()).command is not None
    assert set(hints.OPTIONS) <= set(tree.COMMANDS)


@pytest.mark.rule("C-082b")
@pytest.mark.parametrize(
    ("files", "words", "hint"),
    [
        ({"a": "base: [b]\n", "b": "base: [a]\n"}, ("template", "validate"), "take `a` out of the `base` here"),
        ({"a": "base:\nconfig: {target: {service: local}, target: {}}\n"}, ("template", "show", "a"), "join the two"),
        ({"a": "base:\nconfig: {jobs: [1\n"}, ("template", "show", "a"), "close what begins on line 2"),
        ({"a": "base:\nconfig:\n  a: b: c\n"}, ("template", "show", "a"), "quote a value with `: ` in it"),
        ({"a": "base:\nconfig:\n  a: 1\n b: 2\n"}, ("template", "show", "a"), "look at the indentation"),
        ({}, ("run", "--env-file", "nope", "true"), "a file of `NAME=VALUE` lines"),
        ({}, ("run", "--require-clean", "true"), "leave out `--require-clean`"),
        ({}, ("run", "--queue", "--wait", "true"), "then `aj wait TICKET`"),
        ({}, ("run", "-d", "true"), "`aj code stats --list-all`"),
        ({}, ("job", "train.py"), "did you mean `aj run train.py`?"),
    ],
)
def test_an_error_names_the_next_step(
    aj: Shell, programs: None, files: dict[str, str], words: tuple[str, ...], hint: str
) -> None:
    aj.template("local", "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n")
    aj.write(".azure_jobs/aj.toml", 'template = "local"\n')
    for name, text in files.items():
        aj.template(name, text)
    ran = aj(*words)
    assert ran.code == 2 and hint in ran.err + ran.out, (ran.err, ran.out)
