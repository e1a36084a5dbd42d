"""Environment variables of the command line: `-e K=V`, `-e K`, and files of `K=V` lines. Values are opaque."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aj.base.errors import OptionError, Place, UserError
from aj.model import names

NAME_HINT = "a name is letters, digits and `_`, not beginning with a digit"


def pairs(words: Sequence[str], caller: Mapping[str, str]) -> dict[str, str]:
    """Read the words of `-e`: the first `=` splits, a name alone takes the caller's value. Raises OptionError."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not names.is_env(name):
            raise OptionError(f"-e {word}: `{name}` cannot be the name of a variable", hint=NAME_HINT)
        if not equals and name not in caller:
            raise OptionError(f"-e {name}: the variable {name} is not set here", hint=f"write -e {name}=VALUE")
        found[name] = _text(value if equals else caller[name], f"-e {name}")
    return found


def file_pairs(content: bytes, file: str) -> dict[str, str]:
    """Read an environment file: `K=V` lines, blank lines and `#` lines; nothing is expanded. Raises UserError."""
    found: dict[str, str] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        row = line.removesuffix(b"\r")
        if not row.strip() or row.lstrip().startswith(b"#"):
            continue
        name, equals, value = row.decode("utf-8", "surrogateescape").partition("=")
        place = Place(file, number, 1)
        if not equals:
            raise UserError("a line of an environment file is NAME=VALUE", place=place)
        if not names.is_env(name):
            raise UserError(f"`{name}` cannot be the name of a variable", place=place, hint=NAME_HINT)
        found[name] = _text(value, f"{file}:{number}")
    return found


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{where}: the value is not UTF-8") from error
    if "\0" in value:
        raise UserError(f"{where}: the value has a NUL character, which no environment can hold")
    return value
