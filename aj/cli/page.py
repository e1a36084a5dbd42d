"""Help as data: the page of every command and group, read from its declaration; help and man pages print it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.cli import bind, declare, leaf, tree, words
from aj.view import help as view

if TYPE_CHECKING:
    from aj.cli.declare import Declaration, Option
    from aj.view.document import Document

EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {
        0: "done; also an empty list, nothing to do, a closed pipe, a dry run",
        1: "the operation or the job failed",
        2: "wrong words or files",
        3: "no such job, ticket, template or setting; for `daemon status`: not running",
        4: "not signed in; the hint is the command that signs in",
        5: "refused by a policy or a conflict, or a question that nobody answered",
        6: "the outcome is not known; the hint is how to find out",
        7: "the daemon cannot be reached, hangs, or speaks another language",
        70: "something unexpected; a report file is named",
        124: "a time limit of the caller ran out; nothing was stopped by it",
        130: "Ctrl-C",
        143: "SIGTERM",
    }
)


@dataclass(frozen=True)
class Section:
    """A heading with its rows (term, explanation), or with plain lines."""

    title: str
    rows: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """One page of help."""

    title: str
    says: str
    usage: str
    sections: tuple[Section, ...]


def of(path: tuple[str, ...]) -> Page:
    """Return the page of a command, of a group, or of `aj` itself (an empty path)."""
    return _of_command(path) if path in tree.COMMANDS else _of_group(path)


def every() -> Sequence[Page]:
    """Return all pages: `aj` itself, the groups, the commands."""
    return [of(path) for path in dict.fromkeys(((), *tree.GROUPS, *tree.COMMANDS))]


def _of_group(path: tuple[str, ...]) -> Page:
    title = " ".join(["aj", *path])
    if path:
        return Page(title, tree.says(path), f"{title} COMMAND", (_below(path), _globals()))
    found = [(heading, tuple((name[0], says) for name, says in tree.under(heading))) for heading in leaf.HEADINGS]
    headings = [Section(heading, rows) for heading, rows in found if rows]
    first = Section("First steps", lines=("aj init local", "aj run -t local train.py", "aj help templates"))
    topics = Section("Topics (`aj help TOPIC`)", tuple(tree.TOPICS.items()))
    return Page("aj", "submit and run jobs from one file", "aj COMMAND", (first, *headings, topics, _globals()))


def _below(path: tuple[str, ...]) -> Section:
    return Section("Commands", tuple((child, tree.says((*path, child))) for child in tree.children(path)))


def _of_command(path: tuple[str, ...]) -> Page:
    from aj.cli.app import room

    command = tree.COMMANDS[path]
    declaration = declare.read(room(command).Options)
    sections = [Section("Examples", lines=command.examples)]
    if path in tree.GROUPS:
        sections.append(_below(path))
    if declaration.places:
        sections.append(Section("Words", tuple((word.name, word.says) for _, word in declaration.places)))
    if declaration.options:
        sections.append(Section("Options", _options(declaration)))
    if command.local:
        sections.append(Section("Needs", lines=("nothing but files of this machine: no daemon, no network",)))
    codes = tuple((str(code), EXIT_CODES[code]) for code in (0, 1, *command.exits, 70))
    sections += [_globals(), Section("Exit codes", codes)]
    return Page(f"aj {command.name}", command.says, bind.usage(command, declaration), tuple(sections))


def _options(declaration: Declaration) -> tuple[tuple[str, str], ...]:
    return tuple((_spelled(option), _says(option)) for _, option in declaration.options)


def _says(option: Option) -> str:
    return f"{option.says}; may be given again" if option.repeats else option.says


def _globals() -> Section:
    rows = [(_spelled(option), option.says) for option in words.GLOBALS.values()]
    return Section("Everywhere", tuple(rows))


def _spelled(option: Option) -> str:
    named = ", ".join(option.spellings)
    if option.bare:
        return f"{named}[={option.value}]"
    return f"{named} {option.value}" if option.value else named


def document(path: tuple[str, ...]) -> Document:
    """Return the page of a path as a document."""
    page = of(path)
    return view.page(page.title, page.says, page.usage, [(part.title, part.rows, part.lines) for part in page.sections])
