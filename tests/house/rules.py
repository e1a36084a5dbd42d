"""Which numbered rules exist, and which tests name them.

The register is tests/rules.toml. Marks are found by reading the source of the tests, not by importing
them: a rule counts as named also where its test needs a program that this machine lacks.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
REGISTER = TESTS / "rules.toml"

MARK = ("pytest.mark.rule", "mark.rule")  # the second where `mark` was imported by itself
CAPABILITIES = ("house", "offline", "azure", "volcano", "lifecycle", "tools", "pool")


@dataclass(frozen=True)
class Rule:
    """One sentence about what happens, and the capability whose tests prove it."""

    says: str
    capability: str


@dataclass(frozen=True)
class Mark:
    """One id inside one `pytest.mark.rule(…)`; the id is None where it is not written out."""

    rule: str | None
    node: str
    where: str


def register(path: Path = REGISTER) -> dict[str, Rule]:
    """Return id -> rule, in the order of the file."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return {rule: Rule(says=entry["says"], capability=entry["for"]) for rule, entry in entries.items()}


def marks(tests: Path = TESTS) -> Iterator[Mark]:
    """Yield every mark below a folder, on functions, classes, parameters and whole modules."""
    for path in sorted(tests.rglob("*.py")):
        name = path.relative_to(tests.parent).as_posix()
        tree = ast.parse(path.read_bytes(), filename=str(path))
        yield from _marks_below(tree, node=name, file=name)


def named(tests: Path = TESTS) -> dict[str, list[str]]:
    """Return rule id -> names of the tests that name it, as pytest writes them (`file::class::function`)."""
    found: dict[str, list[str]] = {}
    for mark in marks(tests):
        if mark.rule is not None and mark.node not in found.setdefault(mark.rule, []):
            found[mark.rule].append(mark.node)
    return found


def missing(capability: str | None = None, *, tests: Path = TESTS, path: Path = REGISTER) -> list[tuple[str, str]]:
    """Return id and sentence of each rule that no test names. ValueError for an unknown capability."""
    if capability is not None and capability not in CAPABILITIES:
        raise ValueError(f"no capability called {capability} (has: {', '.join(CAPABILITIES)})")
    proved = named(tests)
    return [
        (rule, entry.says)
        for rule, entry in register(path).items()
        if rule not in proved and capability in (None, entry.capability)
    ]


def _marks_below(tree: ast.AST, *, node: str, file: str) -> Iterator[Mark]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Call) and ast.unparse(child.func) in MARK:
            yield from _marks_of(child, node=node, file=file)
        elif isinstance(child, ast.Attribute) and ast.unparse(child) == MARK[0]:  # an alias, or a mark without ids
            yield Mark(None, node, f"{file}:{child.lineno}")
        elif isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _marks_below(child, node=f"{node}::{child.name}", file=file)
        else:
            yield from _marks_below(child, node=node, file=file)


def _marks_of(call: ast.Call, *, node: str, file: str) -> Iterator[Mark]:
    for argument in call.args or [call]:
        text = argument.value if isinstance(argument, ast.Constant) else None
        yield Mark(text if isinstance(text, str) else None, node, f"{file}:{call.lineno}")
