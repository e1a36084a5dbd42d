"""Where a key stands in a TOML file: a small scan over keys and tables, for `file:line` in messages.

The standard library reads TOML without telling lines. This scan follows tables, strings and brackets
just far enough to know on which line a key begins; what it cannot tell apart, as keys of an inline
table, is at the line of the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_PART = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = rf"\s*\[\[?\s*({_KEY})\s*\]"
_PAIR = rf"\s*({_KEY})\s*="
_TOKEN = r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]'


def lines(source: str) -> dict[str, int]:
    """Return dotted key -> line (from 1) of every key and table."""
    found: dict[str, int] = {}
    table: tuple[str, ...] = ()
    for number, line in _beginnings(source):
        if header := re.match(_HEADER, line):
            table = _parts(header[1])
            _note(found, table, number)
        elif pair := re.match(_PAIR, line):
            _note(found, (*table, *_parts(pair[1])), number)
    return found


def _note(found: dict[str, int], parts: tuple[str, ...], number: int) -> None:
    """Note a key, and the tables around it that stand nowhere by themselves."""
    for count in range(1, len(parts) + 1):
        found.setdefault(".".join(parts[:count]), number)


def line_of(found: dict[str, int], key: str) -> int:
    """Return the line of a key, else of the nearest table around it, else 0."""
    while key not in found:
        if "." not in key:
            return 0
        key = key.rpartition(".")[0]
    return found[key]


def _parts(key: str) -> tuple[str, ...]:
    return tuple(_name(part) for part in re.findall(_PART, key))


def _name(part: str) -> str:
    if part.startswith("'"):
        return part[1:-1]
    if not part.startswith('"'):
        return part
    try:
        return str(json.loads(part))  # the escapes of TOML are those of JSON, and two rare ones
    except ValueError:
        return part[1:-1]


def _beginnings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that do not begin inside a string or a bracket of an earlier line."""
    quote, depth = "", 0
    for number, line in enumerate(source.split("\n"), start=1):
        if not quote and not depth:
            yield number, line
            if re.match(_HEADER, line):
                continue  # its brackets are no value
        quote, depth = _after(line, quote, depth)


def _after(line: str, quote: str, depth: int) -> tuple[str, int]:
    """Return the open quote and the open brackets at the end of a line."""
    at = 0
    while True:
        if quote:
            end = _closing(line, quote, at)
            if end < 0:
                return quote, depth
            quote, at = "", end + 3
        token = re.compile(_TOKEN).search(line, at)
        if token is None:
            return quote, depth
        at = token.end()
        if token[0] in ('"""', "'''"):
            quote = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1


def _closing(line: str, quote: str, at: int) -> int:
    """Return where a many-line string ends, or -1. In a basic one a backslash hides the next character."""
    if quote == "'''":
        return line.find(quote, at)
    found = re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL).match(line, at)
    return found.end() - 3 if found else -1
