"""Plain values to YAML text that readers of version 1.1 and of version 1.2 take for the same values."""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml

from aj.model.json import Json

# Plain text that only 1.2 reads as a number: PyYAML, which follows 1.1, would leave it unquoted.
_NUMBER_OF_1_2 = re.compile(r"[-+]?(?:0o[0-7]+|(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)\Z")
_TEXT = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """Quotes what any reader might take for another kind, and writes every value out."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if not value.isprintable():
        return dumper.represent_scalar(_TEXT, value, style='"')  # only there every character survives
    return dumper.represent_scalar(_TEXT, value, style="'" if _NUMBER_OF_1_2.match(value) else None)


_Dumper.add_representer(str, _text)


class _Readable(_Dumper):
    """Writes lines as lines."""


def _lines(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    lines = value.split("\n")
    if len(lines) > 1 and value.strip() and all(line.isprintable() for line in lines):
        return dumper.represent_scalar(_TEXT, value, style="|")
    return _text(dumper, value)


_Readable.add_representer(str, _lines)


def dump(value: Json) -> str:
    """Write a value as one YAML document, keys in their order."""
    return yaml.dump(_plain(value), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1000)


def readable(value: Json) -> str:
    """Write a value as `dump` does, but text of several lines as it stands where that loses nothing."""
    return yaml.dump(_plain(value), Dumper=_Readable, allow_unicode=True, sort_keys=False, width=1000)


def _plain(value: Json) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
