"""One value of a template's text set anew, with everything around it, comments too, left as it is."""

from __future__ import annotations

import json
import re

from aj.base.errors import OptionError, TemplateError
from aj.template import yaml
from aj.template.tree import Items, Node, Scalar, Section, Unset

_STEP = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_./-]*?)(?P<index>\[[0-9]{1,3}\])?(?:\.|\Z)")
_PAIRS = ("[]", "{}", '""', "''")
_COMMENT = re.compile(r"\s+#.*\Z")


def put(text: str, path: str, word: str) -> str:
    """Return the text with a value of `config` set: `target.name`, `jobs[0].sku`. A new key is added.

    The word is read as YAML where it is one line of it, else as text. Raises OptionError on a path that leads nowhere.
    """
    steps = _steps(path)
    root = yaml.read(text.encode(), "template").root
    node: Node | None = root.entries.get("config") if isinstance(root, Section) else None
    for depth, step in enumerate(steps):
        found = _below(node, step)
        if found is None:
            return _added(text, node, steps[depth:], word, path)
        node = found
    assert node is not None, "a path has a step"
    return _replaced(text, node, word)


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise _nowhere(path)
        steps.append(found["key"])
        steps += [int(found["index"][1:-1])] if found["index"] else []
        at = found.end()
    if not steps or path.endswith("."):
        raise _nowhere(path)
    return steps


def _nowhere(path: str) -> OptionError:
    return OptionError(f"--set {path}: no such place", hint="such as `target.name` or `jobs[0].sku`", code="bad-path")


def _below(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, Section) and isinstance(step, str):
        return node.entries.get(step)
    if isinstance(node, Items) and isinstance(step, int):
        return node.items[step] if step < len(node.items) else None
    return None


def _replaced(text: str, node: Node, word: str) -> str:
    lines = text.splitlines()
    row, column = node.place.line - 1, node.place.column - 1
    if isinstance(node, Unset) or not _is_on_one_line(node, lines[row][column : column + 1]):
        raise OptionError(f"--set: {node.place} is more than one line", hint="edit the file", code="bad-path")
    comment = _COMMENT.search(lines[row], column)
    lines[row] = lines[row][:column] + _written(word) + (comment[0] if comment else "")
    return "\n".join(lines) + "\n"


def _is_on_one_line(node: Node, first: str) -> bool:
    """Whether a value is a scalar, or a list in brackets; `first` is the character that it begins with."""
    if isinstance(node, Items):
        return first == "[" and all(item.place.line == node.place.line for item in node.items)
    return isinstance(node, Scalar) or (isinstance(node, Section) and not node.keys)


def _added(text: str, node: Node | None, steps: list[str | int], word: str, path: str) -> str:
    """Add a key, with the mappings that lead to it, to a mapping that is there."""
    if not isinstance(node, Section) or not all(isinstance(step, str) for step in steps):
        raise _nowhere(path)
    lines = text.splitlines()
    if node.keys:
        margin = min(place.column for place in node.keys.values()) - 1
        end = max(place.line for place in node.keys.values())
    else:
        end, margin = _opened(lines, node)
    new = [f"{' ' * margin}{'  ' * depth}{step}:" for depth, step in enumerate(steps)]
    new[-1] += f" {_written(word)}"
    while end < len(lines) and (lines[end].startswith(" " * (margin + 1)) or not lines[end].strip()):
        end += 1
    return "\n".join([*lines[:end], *new, *lines[end:]]) + "\n"


def _opened(lines: list[str], node: Section) -> tuple[int, int]:
    """Take the `{}` of an empty mapping away; return how many lines then stand before its keys, and their margin."""
    row, column = node.place.line - 1, node.place.column - 1
    line = lines[row]
    lines[row] = line[:column].rstrip() + line[column + len("{}") :]
    return row + 1, len(line) - len(line.lstrip(" -")) + 2


def _written(word: str) -> str:
    """Return a word as one line of YAML: as it is where it reads as a value, else quoted."""
    is_bracketed = word[:1] + word[-1:] in _PAIRS
    try:
        may_be_yaml = "\n" not in word and (is_bracketed or " #" not in word)
        root = yaml.read(f"v: {word}\n".encode(), "--set").root if may_be_yaml else None
    except TemplateError:
        root = None
    node = root.entries.get("v") if isinstance(root, Section) and len(root.entries) == 1 else None
    is_plain = node is not None and not isinstance(node, Unset) and (word.strip() == word and word != "")
    return word if is_plain else json.dumps(word, ensure_ascii=False)
