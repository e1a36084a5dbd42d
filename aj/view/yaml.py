"""A document as YAML that readers of version 1.1 and of version 1.2 understand alike."""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml

from aj.model.json import Json

# Plain text that only 1.2 reads as a number: PyYAML, which follows 1.1, would leave it unquoted.
_NUMBER_OF_1_2 = re.compile(r"[-+]?(?:0o[0-7]+|(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)\Z")


class _Dumper(yaml.SafeDumper):
    """Writes block style, quotes what any reader might take for another type, and no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=_style(value))


def _style(value: str) -> str | None:
    """Return how a text must be written: plain where that can mean nothing else."""
    if not value.isprintable():
        return "|" if _is_block(value) else '"'  # only between double quotes every character survives
    return "'" if _NUMBER_OF_1_2.match(value) else None


def _is_block(value: str) -> bool:
    lines = value.split("\n")
    return (
        len(lines) > 1
        and all(line == line.rstrip() and line.isprintable() for line in lines)
        and not value.startswith((" ", "\n"))
    )


_Dumper.add_representer(str, _text)


def dump(value: Json) -> str:
    """Return a JSON value as one YAML document."""
    return yaml.dump(_plain(value), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1000)


def _plain(value: Json) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value
