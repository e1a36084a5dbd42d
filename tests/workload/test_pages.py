"""The pages about Python show programs that are programs, and names that are there."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap

import pytest

from aj.cli import docs

BLOCK = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)


@pytest.mark.rule("CO-01", "TD-15")
@pytest.mark.parametrize("page", ["python", "deployments"])
def test_programs_on_the_pages_can_be_read(page: str) -> None:
    blocks = [textwrap.dedent(found.group()) for found in BLOCK.finditer(docs.pages()[page])]
    programs = [ast.parse(block) for block in blocks if "import " in block]
    assert programs
    for program in programs:
        for node in ast.walk(program):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("aj"):
                room = importlib.import_module(node.module)
                assert all(hasattr(room, name.name) for name in node.names)
