"""The price table of the user: what an hour of a host costs, in `prices.toml` beside the user's settings.

    local = 0.75                                  # a job of this machine, whatever it takes of it

    [vm]
    default = 3.50
    "Standard_NC24ads_A100_v4" = 3.67
    "Standard_NC24ads_A100_v4@westeurope" = 4.10  # nearer than the line above

Amounts are US dollars, read as they are written: no sum of them is rounded on its way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from aj.base import plain, text
from aj.base.errors import ConfigError, Place
from aj.model import money
from aj.model.spend import DEFAULT, Prices
from aj.store import toml_lines

SERVICES = ("local", "vm", "pool", "aml", "sing", "volcano", "amlt")
_SPOT = r" \(at line (\d+), column (\d+)\)\Z"

MOST_BYTES = 64 << 10  # a table of prices has dozens of lines
Mark = tuple[int, int, int]


def mark(file: Path) -> Mark | None:
    """Return what changes with the file; None when there is none. One that cannot be looked at is no missing one."""
    try:
        found = os.stat(file)
    except OSError:
        return (0, 0, 0) if os.path.lexists(file) else None
    return found.st_mtime_ns, found.st_size, found.st_ino


def read(file: Path) -> Prices:
    """Read the table; without a file there are no prices. Raises ConfigError at file and line."""
    try:
        source = plain.read(file, MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        return Prices()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", place=Place(str(file))) from error
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", place=Place(str(file)), code="broken-prices") from error
    tree = _parsed(file, source)
    lines = toml_lines.lines(source)
    return Prices({name: _kinds(file, lines, name, value) for name, value in tree.items()})


def _parsed(file: Path, source: str) -> Mapping[str, object]:
    import tomllib  # 5 ms, only when there is a table

    try:
        return tomllib.loads(source, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        spot = re.search(_SPOT, str(error))
        line, column = (int(spot[1]), int(spot[2])) if spot else (source.count("\n") + 1, 0)
        words = str(error).partition(" (at ")[0]
        place = Place(str(file), line, column)
        raise ConfigError(f"not TOML: {words[:1].lower()}{words[1:]}", place=place, code="broken-prices") from None
    except RecursionError:
        raise ConfigError("nested too deeply", place=Place(str(file)), code="broken-prices") from None


def _kinds(file: Path, lines: dict[str, int], service: str, value: object) -> Mapping[str, int]:
    """Read what one service costs: one price, or one for each kind of machine."""
    if service not in SERVICES:
        near = text.nearest(service, SERVICES)
        hint = f"did you mean `{near}`?" if near else f"one of {', '.join(SERVICES)}"
        raise _wrong(file, lines, service, f"`{service}` is no service", hint)
    if not isinstance(value, Mapping):
        return {DEFAULT: _price(file, lines, service, value)}
    return {str(kind): _price(file, lines, f"{service}.{kind}", one) for kind, one in value.items()}


def _price(file: Path, lines: dict[str, int], key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        hint = f"write `{key.rpartition('.')[2]} = 2.40`: US dollars an hour"
        raise _wrong(file, lines, key, f"`{key}` is {_shown(value)}, and no number", hint)
    try:
        return money.read(value)
    except ValueError as error:
        raise _wrong(file, lines, key, f"`{key}`: {error}", None) from None


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _wrong(file: Path, lines: dict[str, int], key: str, words: str, hint: str | None) -> ConfigError:
    return ConfigError(words, hint=hint, place=Place(str(file), toml_lines.line_of(lines, key)), code="bad-price")
