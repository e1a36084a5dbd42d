"""Words to an `Options`: every value read by its kind, what is missing or too much told by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, cast

from aj.base.errors import OptionError

if TYPE_CHECKING:
    from aj.cli.declare import Declaration, Declared
    from aj.cli.leaf import Command
    from aj.cli.words import Line


def bind(command: Command, options: type, declaration: Declaration, line: Line) -> object:
    """Make the command's `Options` of the words of a line. Raises OptionError naming the word."""
    if not line.values and not line.places and not any(field.required for field in declaration.fields):
        return options()  # nothing was typed, so there is nothing to read
    import cyclopts  # 75 ms: not for help, completion or an error before this point

    places = _apart(command, declaration, line)
    app = cyclopts.App(
        name=command.name,
        help_flags=(),
        version_flags=(),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
    )
    app.default(_maker(options, _asked(declaration, line)))
    try:
        return app(_tokens(declaration, line, places))
    except cyclopts.MissingArgumentError as error:
        name = (error.argument.name if error.argument else "a word").removeprefix("--")
        about = {word.name: f"{word.name} is {word.says}: " for _, word in declaration.places}.get(name, "")
        raise OptionError(f"{name} is missing", hint=about + _usage(command, declaration)) from error
    except cyclopts.UnusedCliTokensError as error:
        raise _too_many((error.unused_tokens or ["?"])[0], command, declaration) from error
    except cyclopts.CycloptsError as error:
        raise OptionError(str(error)) from error


def _too_many(word: str, command: Command, declaration: Declaration) -> OptionError:
    usual = _usage(command, declaration)
    takes_one = any(place.has_no_space and not place.many for _, place in declaration.places)
    return OptionError(f"`{word}` is one word too many", hint=f"one at a time: {usual}" if takes_one else usual)


def _apart(command: Command, declaration: Declaration, line: Line) -> list[str]:
    """Take words apart that hold several ids, as `$ids` of zsh does. Raises OptionError where one id is due."""
    found: list[str] = []
    places = [word for _, word in declaration.places]
    for at, given in enumerate(line.places):
        place = places[min(at, len(places) - 1)] if places else None
        words = given.split() if place and place.has_no_space else []
        if place and not place.many and len(words) > 1:
            raise _too_many(words[1], command, declaration)
        found += words or [given]
    return found


def _asked(declaration: Declaration, line: Line) -> Declaration:
    """Leave out what was not typed: its default stands in the class, and cyclopts would take 1 ms to hear of it."""
    fields = (field for field in declaration.fields if field.word or field.required or field.field in line.values)
    return replace(declaration, fields=tuple(fields))


def _usage(command: Command, declaration: Declaration) -> str:
    return f"`{usage(command, declaration)}`"


def usage(command: Command, declaration: Declaration) -> str:
    """Return the usage line: `aj run [OPTIONS] COMMAND...`."""
    parts = ["aj", command.name]
    parts += ["[OPTIONS]"] if declaration.options else []
    for field, word in declaration.places:
        name = f"{word.name}..." if word.many else word.name
        parts.append(name if field.required else f"[{name}]")
    return " ".join(parts)


def _tokens(declaration: Declaration, line: Line, places: Sequence[str]) -> list[str]:
    """Write the line again so that nothing in it can be read in two ways."""
    tokens = []
    for field, option in declaration.options:
        for value in line.values.get(field.field, ()):
            tokens.append(f"{option.name}={value}" if option.value else option.name)
    return [*tokens, "--", *places]


def _maker(options: type, declaration: Declaration) -> Callable[..., object]:
    """Return a function with the signature that the declaration describes; it makes the `Options`."""
    many = next((field.field for field, word in declaration.places if word.many), None)
    single = [field.field for field, word in declaration.places if not word.many]

    def make(*places: object, **named: object) -> object:
        given = dict(zip(single, places, strict=False))
        if many:
            given[many] = places[len(single) :]
        return options(**given, **named)

    parameters = [_parameter(field) for field in _in_order(declaration)]
    make.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    make.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return make


def _in_order(declaration: Declaration) -> Sequence[Declared]:
    places = [field for field, _ in declaration.places]
    return [*places, *(field for field, _ in declaration.options)]


def _parameter(field: Declared) -> inspect.Parameter:
    import cyclopts

    empty = inspect.Parameter.empty
    if field.word:
        about = cyclopts.Parameter(name=field.word.name, converter=_reader(field), required=field.required)
        kind = inspect.Parameter.VAR_POSITIONAL if field.word.many else inspect.Parameter.POSITIONAL_ONLY
        hint = str if field.word.many else field.type
        default = empty if field.required or field.word.many else field.default
        return inspect.Parameter(field.field, kind, annotation=Annotated[hint, about], default=default)
    option = field.option
    assert option is not None
    converter = _reader(field) if option.value else None
    about = cyclopts.Parameter(name=option.name, negative=(), converter=converter)
    default = empty if field.required else field.default
    return inspect.Parameter(
        field.field, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[field.type, about], default=default
    )


def _reader(field: Declared) -> Callable[[object, Sequence[object]], object]:
    """Return cyclopts' form of a kind: all tokens of one option, or one token of a place."""
    kind = field.option.kind if field.option else field.word.kind if field.word else str
    name = field.option.name if field.option else field.word.name if field.word else field.field
    repeats = field.option is not None and field.option.repeats

    def read(_: object, tokens: Sequence[object]) -> object:
        values = [_read(kind, name, cast(str, getattr(token, "value", ""))) for token in tokens]
        return tuple(values) if repeats else values[-1]

    return read


def _read(kind: Callable[[str], object], name: str, word: str) -> object:
    try:
        return kind(word)
    except ValueError as error:
        raise OptionError(f"`{name}`: {error}") from error
