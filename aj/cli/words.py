"""The words of a command line: which belong to `aj` itself, which to the command, which to the user's program.

Global options may stand before or after the command. Where a command hands words on (`run`, `exec`), nothing
from the first of them on is looked at, whatever it looks like. Every option of a line is known here, so a
value that looks like an option is still a value, and an unknown option is an error before anything happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import hints, tree
from aj.cli.declare import Declaration, Option, choice, filled
from aj.cli.leaf import Command

if TYPE_CHECKING:
    from aj.cli.declare import Declared, Word

FORMATS = ("table", "json", "jsonl", "yaml", "name")
GLOBALS: Mapping[str, Option] = {
    "output": Option("-o --output", "table, json, jsonl, yaml or name", "FORMAT", choice(*FORMATS), values="format"),
    "json": Option("--json", "the same as `-o json`"),
    "only_ids": Option("--only-ids", "the same as `-o name`"),
    "quiet": Option("-q --quiet", "no notes and no progress"),
    "verbose": Option("-v --verbose", "tell how things were decided"),
    "no_color": Option("--no-color", "no colour"),
    "no_input": Option("--no-input", "never ask"),
    "directory": Option("-C", "work as if started in this folder", "DIR", filled, values="folder"),
    "help": Option("-h --help", "this help"),
}
_GLOBAL_OF = {name: key for key, option in GLOBALS.items() for name in option.spellings}
NOTHING = Declaration(())


@dataclass
class Globals:
    """What the global options said."""

    output: str | None = None
    json: bool = False
    only_ids: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    no_input: bool = False
    directory: str | None = None
    help: bool = False

    @property
    def format(self) -> str | None:
        """The format that was asked for, or None. Raises OptionError when two different ones were."""
        asked = {name for name, given in (("json", self.json), ("name", self.only_ids)) if given}
        asked |= {self.output} if self.output else set()
        if len(asked) > 1:
            named = " and ".join(f"`{word}`" for word in sorted(asked))
            raise OptionError(f"two formats at once: {named}", hint="give one of `-o FORMAT`, `--json`, `--only-ids`")
        return next(iter(asked), None)


@dataclass
class Line:
    """A command line, taken apart. `values` are those of the command's own options, by their field's name."""

    found: Globals = field(default_factory=Globals)
    values: dict[str, list[str]] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    """Where the command stands: its path, the words after it, and what was said before it."""

    path: tuple[str, ...]
    rest: tuple[str, ...]
    line: Line
    command: Command | None


def find(argv: Sequence[str]) -> Found:
    """Find the command of a line. Raises OptionError on an unknown command or global option."""
    line, at = Line(), 0
    path: tuple[str, ...] = ()
    while at < len(argv):
        word = argv[at]
        if word.startswith("-") and word not in ("-", "--"):
            at = _before_command(argv, at, line, path)
            continue
        longer = tree.resolve((*path, word))
        if longer is None:
            if "-h" in argv[at:] or "--help" in argv[at:]:
                line.found.help = True
                return Found(path, (), line, None)
            raise unknown_command(path, word)
        path, at = longer, at + 1
        command = tree.COMMANDS.get(path)
        if command and not _goes_on(path, argv[at:]):
            return Found(path, tuple(argv[at:]), line, command)
    return Found(path, (), line, None)


def _goes_on(path: tuple[str, ...], rest: Sequence[str]) -> bool:
    """Whether a command that is a group as well is followed by the name of one below it."""
    if path not in tree.GROUPS:
        return False
    words = iter(rest)
    for word in words:
        option = GLOBALS.get(_GLOBAL_OF.get(word.partition("=")[0], ""))
        if option is None:
            return tree.resolve((*path, word)) is not None
        if option.value and "=" not in word:
            next(words, None)
    return False


def _before_command(argv: Sequence[str], at: int, line: Line, path: tuple[str, ...]) -> int:
    """Take one word of global options; return the place of the next word. Raises OptionError."""
    try:
        return _option(argv, at, line, NOTHING)
    except OptionError as error:
        raise hints.behind_group(error, path) from None


def unknown_command(path: Sequence[str], word: str) -> OptionError:
    """Say that a word is no command, with the nearest one."""
    what = " ".join(["aj", *path])
    meant = hints.command(path, word)
    hint = f"`aj {meant}`" if meant else f"`{what} --help` lists them"
    return OptionError(f"`{word}` is no command of `{what}`", hint=hint, code="unknown-command")


def take(words: Sequence[str], declaration: Declaration, line: Line) -> Line:
    """Take the words after the command apart, into `line`. Raises OptionError naming the word."""
    places = [word for _, word in declaration.places]
    at = 0
    while at < len(words):
        frozen = _is_frozen(places, len(line.places))
        if frozen and line.places:  # the words after a job's id are all its command's
            line.places += words[at + 1 :] if words[at] == "--" else words[at:]
            return line
        if words[at] == "--":
            line.places += words[at + 1 :]
            return line
        if words[at].startswith("-") and words[at] != "-":
            at = _option(words, at, line, declaration)
        elif frozen:
            line.places += words[at:]
            return line
        else:
            line.places.append(words[at])
            at += 1
    return line


def _is_frozen(places: Sequence[Word], taken: int) -> bool:
    """Whether the next plain word, and all after it, belong to the user's program."""
    return taken < len(places) and places[taken].freezes


def _option(words: Sequence[str], at: int, line: Line, declaration: Declaration) -> int:
    """Take one word of options; return the place of the next word."""
    word, following = words[at], words[at + 1 :]
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return at + 1 + _put(name, value if equals else None, following, line, declaration, word)
    for place in range(1, len(word)):
        name, rest = f"-{word[place]}", word[place + 1 :]
        if _takes_value(name, declaration, word):
            given = rest.removeprefix("=") if rest else None
            return at + 1 + _put(name, given, following, line, declaration, word)
        if rest.startswith("="):
            raise OptionError(f"`{name}` takes no value")
        _put(name, None, (), line, declaration, word)
    return at + 1


def _takes_value(name: str, declaration: Declaration, word: str) -> bool:
    return bool(_known(name, declaration, word)[1].value)


def _known(name: str, declaration: Declaration, word: str) -> tuple[Declared | None, Option]:
    """Return the declaration of an option; the command's own comes before the global one."""
    own = declaration.by_spelling.get(name)
    if own and own.option:
        return own, own.option
    if name in _GLOBAL_OF:
        return None, GLOBALS[_GLOBAL_OF[name]]
    if name in ("-V", "--version"):
        raise OptionError(f"`{name}` stands alone", hint="`aj version` takes options")
    near = hints.option(name, [*declaration.by_spelling, *_GLOBAL_OF])
    hint = f"`{near}`" if near else "`--help` lists the options"
    shown = name if word.startswith("--") else word
    raise OptionError(f"`{shown}` is no option here", hint=hint, code="unknown-option", details={"option": name})


def _put(
    name: str, given: str | None, following: Sequence[str], line: Line, declaration: Declaration, word: str
) -> int:
    """Keep one option; return how many of the following words it took."""
    own, option = _known(name, declaration, word)
    if not option.value:
        if given is not None:
            raise OptionError(f"`{name}` takes no value")
        value, taken = "", 0
    elif given is not None:
        value, taken = given, 0
    elif following:
        value, taken = following[0], 1
    else:
        raise OptionError(
            f"`{name}` needs a value",
            hint=f"`{name} {option.value}`",
            code="missing-value",
            details={"values": option.values},
        )
    if own:
        kept = line.values.setdefault(own.field, [])
        line.values[own.field] = [*kept, value] if option.repeats else [value]
    else:
        _keep_global(_GLOBAL_OF[name], option, value, line.found)
    return taken


def _keep_global(key: str, option: Option, value: str, found: Globals) -> None:
    try:
        setattr(found, key, option.kind(value) if option.value else True)
    except ValueError as error:
        raise OptionError(f"`{option.name}`: {error}") from error


def behind_program(words: Sequence[str], declaration: Declaration) -> list[str]:
    """Return which words of a user's program are spelled as options of ours, each once.

    `-o` is when a format of ours follows; the other short global options are too common in programs.
    """
    ours = {*declaration.by_spelling, *(name for name in _GLOBAL_OF if name.startswith("--"))} - {"--help"}
    found: dict[str, None] = {}
    for word, following in zip(words, (*words[1:], ""), strict=False):
        name = word.partition("=")[0] if word.startswith("--") else word
        if word == "--":
            break  # what stands behind it is for a program of the program
        if name in ours:
            found[name] = None
        elif word == "-o" and following in FORMATS:
            found[f"-o {following}"] = None
        elif word.startswith("-o") and word[2:] in FORMATS:
            found[word] = None
    return list(found)


def guess_format(argv: Sequence[str], otherwise: str | None) -> str:
    """Guess the format of a line that may turn out to be wrong, so that its error has the right form."""
    word = otherwise
    for at, token in enumerate(argv):
        if token == "--":
            break
        if token == "--json":
            word = "json"
        elif token.startswith("--output="):
            word = token.partition("=")[2]
        elif token in ("-o", "--output") and at + 1 < len(argv):
            word = argv[at + 1]
        elif token.startswith("-o") and len(token) > 2:
            word = token[2:].removeprefix("=")
    return word if word in FORMATS else "table"
