"""The pages of the documentation: what they tell to type is there."""

from __future__ import annotations

import re
import shlex

import pytest

from aj.cli import app, declare, docs, words
from tests.cli.conftest import Shell

LINE = re.compile(r"(?:^    |\$\(|; do )((?:AJ_\w+=\S+ )?aj (?:[^#);\n$]|\$(?!\())*)", re.MULTILINE)


@pytest.mark.rule("C-002", "C-069")
@pytest.mark.parametrize("topic", list(docs.pages()))
def test_every_line_of_a_page_can_be_typed(topic: str) -> None:
    for typed in LINE.findall(docs.pages()[topic]):
        line = [word for word in shlex.split(typed.replace("|", " ")) if not word.startswith("AJ_")]
        if "[OPTIONS]" in line:
            continue  # a usage line
        found = words.find(line[1:])
        assert found.command is not None, typed
        words.take(found.rest, declare.read(app.room(found.command).Options), found.line)


@pytest.mark.rule("C-018", "C-014", "C-047")
def test_pages_say_what_a_newcomer_asks(outside: Shell) -> None:
    assert "ids=$(for lr in" in outside("docs", "queue").out
    assert "print the id alone" in outside("docs", "run").out
    for state in ("completed", "errored", "failed", "invalid", "terminated"):
        assert f"| `{state}` |" in outside("docs", "local").out
    assert "cp .gitignore .codeignore" in outside("docs", "code").out
