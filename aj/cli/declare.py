"""How a command declares its words: named options and places for plain words, read from its `Options`.

    @dataclass(frozen=True)
    class Options:
        ticket: Annotated[str, Word("TICKET", "the ticket", values="ticket")]
        limit: Annotated[int, Option("-n --limit", "how many at most", "N", kind=whole(1))] = 20

The parser, the help pages, the man pages and the completion all read the same declaration. It imports
nothing heavy, because completion reads it at every press of the TAB key.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping

from aj.base import units
from aj.base.noun import dataclass

# What is named without whitespace, by the name of its completion. A bucket alone may have a path behind its name.
IDS = ("job", "open-job", "ticket")
ONE_WORD = (*IDS, "deployment", "bucket", "credential", "secret")
Kind = Callable[[str], object]  # reads one word; raises ValueError saying what is due


def text(word: str) -> str:
    """Take a word as it is."""
    return word


def filled(word: str) -> str:
    """Take a word that is not empty."""
    if not word:
        raise ValueError("it is empty")
    return word


def whole(least: int = 0, most: int = 999_999_999) -> Kind:
    """Read a whole number of a range: ASCII digits only, no sign."""

    def read(word: str) -> int:
        try:
            number = units.parse_whole(word)
        except ValueError:
            number = -1
        if not least <= number <= most:
            raise ValueError(f"`{word}` is not a whole number from {least} to {most}")
        return number

    return read


def choice(*known: str) -> Kind:
    """Take one of the known words; the error names them all."""

    def read(word: str) -> str:
        if word not in known:
            raise ValueError(f"`{word}` is none of {', '.join(known)}")
        return word

    return read


def duration(word: str) -> float:
    """Read a duration in seconds."""
    return units.parse_duration(word)


def dollars(word: str) -> int:
    """Read an amount of US dollars above zero, in millionths."""
    from aj.model import money  # 3 ms, only for who limits a cost

    found = money.read(word.removeprefix("$"))
    if not found:
        raise ValueError("it is zero")
    return found


@dataclass(frozen=True)
class Option:
    """A named option: `-t --template`. Without `value` it is a flag; with `repeats` it may be given again.

    A `bare` one may stand without its value, which is then empty; so its value follows a `=`, never a space.
    `values` names the completion of its value: see `aj.cli.complete`. `also` are spellings that are understood
    and not shown: the word of a sister command.
    """

    names: str
    says: str
    value: str = ""
    kind: Kind = text
    repeats: bool = False
    values: str = ""
    bare: bool = False
    also: str = ""

    @property
    def accepted(self) -> tuple[str, ...]:
        return (*self.spellings, *self.also.split())

    @property
    def spellings(self) -> tuple[str, ...]:
        return tuple(self.names.split())

    @property
    def name(self) -> str:
        """The long spelling that errors name."""
        return next((name for name in self.spellings if name.startswith("--")), self.spellings[0])


@dataclass(frozen=True)
class Word:
    """A place for plain words. With `many` it takes all that follow; `freezes` leaves them unparsed."""

    name: str
    says: str
    kind: Kind = text
    many: bool = False
    freezes: bool = False
    values: str = ""

    @property
    def has_no_space(self) -> bool:
        """Whether it is for names that never have whitespace: one word with some is several of them."""
        return self.values in (ONE_WORD if self.many else IDS)


@dataclass(frozen=True)
class Declared:
    """One field of an `Options`: its Python name, its type, its declaration and its default."""

    field: str
    type: object
    option: Option | None
    word: Word | None
    default: object
    required: bool


@dataclass(frozen=True)
class Declaration:
    """All the words of one command, in their order."""

    fields: tuple[Declared, ...]

    @property
    def options(self) -> tuple[tuple[Declared, Option], ...]:
        return tuple((field, field.option) for field in self.fields if field.option)

    @property
    def places(self) -> tuple[tuple[Declared, Word], ...]:
        return tuple((field, field.word) for field in self.fields if field.word)

    @property
    def needs_words(self) -> bool:
        """Whether the command does nothing without words of its own."""
        return any(field.required for field in self.fields)

    @property
    def by_spelling(self) -> Mapping[str, Declared]:
        return {name: field for field, option in self.options for name in option.accepted}


def read(options: type) -> Declaration:
    """Read the declaration of an `Options` class."""
    hints = typing.get_type_hints(options, include_extras=True)
    return Declaration(tuple(_declared(field, hints[field.name]) for field in dataclasses.fields(options)))


def _declared(field: dataclasses.Field[object], hint: object) -> Declared:
    plain, *extras = typing.get_args(hint) if typing.get_origin(hint) is typing.Annotated else (hint,)
    option = next((extra for extra in extras if isinstance(extra, Option)), None)
    word = next((extra for extra in extras if isinstance(extra, Word)), None)
    required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    default = None if required else field.default
    return Declared(field.name, plain, option, word, default, required)
