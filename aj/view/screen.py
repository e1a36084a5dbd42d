"""The terminal: the only room that writes to stdout or stderr, or asks a question.

stdout carries the answer and nothing else; notes, warnings, progress, questions and errors go to stderr.
In a machine format an error is also the one document on stdout. Data is never markup: names and messages
are written as they are, with control characters made visible.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import tzinfo
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from aj.base import clock, paths, text
from aj.base.clock import Clock
from aj.base.errors import AjError, Place, Refused, UserError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.view import table
from aj.view.document import Notice, failure
from aj.view.times import Times

if TYPE_CHECKING:
    from aj.model.json import Json
    from aj.view.document import Document, Item

DEFAULT_SIZE = (80, 24)


class Format(StrEnum):
    """The forms in which a command can give its answer."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    NAME = "name"

    @property
    def is_machine(self) -> bool:
        """Whether an error must be a document on stdout too."""
        return self in (Format.JSON, Format.JSONL, Format.YAML)


@dataclass
class Streams:
    """The three standard streams as bytes; None for one that was closed before the start."""

    out: BinaryIO | None
    err: BinaryIO | None
    asks: bool = False
    in_is_terminal: bool = False
    out_is_terminal: bool = False
    err_is_terminal: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of_process(cls) -> Streams:
        """Return this process's own streams."""
        return cls(
            sys.stdout.buffer if sys.stdout else None,
            sys.stderr.buffer if sys.stderr else None,
            asks=bool(sys.stdin and sys.stderr) and sys.stdin.isatty() and sys.stderr.isatty(),
            in_is_terminal=bool(sys.stdin) and sys.stdin.isatty(),
            out_is_terminal=bool(sys.stdout) and sys.stdout.isatty(),
            err_is_terminal=bool(sys.stderr) and sys.stderr.isatty(),
            encoding=(sys.stdout.encoding if sys.stdout else None) or "utf-8",
        )


@dataclass(frozen=True)
class Taste:
    """What a user settled about tables: the time zone (None for the system's) and `auto` or `never` for colour."""

    zone: tzinfo | None = None
    color: str = "auto"


@dataclass
class Screen:
    """One command's view of the terminal. `taste` is asked only when a table is drawn."""

    streams: Streams
    settings: Settings
    format: Format = Format.TABLE
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    no_input: bool = False
    taste: Callable[[], Taste] = lambda: Taste()
    clock: Clock = clock.SYSTEM
    warnings: list[Notice] = field(default_factory=list)

    # the answer

    def show(self, document: Document) -> None:
        """Write the answer in the chosen format."""
        if self.format is Format.TABLE:
            self._show_table(document)
        elif self.format is Format.NAME:
            self._out("".join(f"{text.cell(name)}\n" for name in document.ids or ()))
        elif self.format is Format.JSONL:
            for item in _items(document):
                self.item(item)
        else:
            self._machine(document.whole([notice.item for notice in self.warnings]))

    def _show_table(self, document: Document) -> None:
        words = table.ended(document.text) if document.text is not None else table.render(document, self.look())
        if document.after:
            words += "\n" + "".join(f"{text.visible(line)}\n" for line in document.after)
        if words:
            self._out(words)
        elif document.empty:
            self.note(document.empty)
        for line in document.footer:
            self.note(line)

    def page(self, document: Document) -> None:
        """Show a long text: through the user's pager when a person reads it and it does not fit."""
        words = document.text or ""
        pager = self._pager() if self.format is Format.TABLE and words.count("\n") >= self._height() else None
        if pager is None:
            self.show(document)
            return
        import tempfile

        from aj.base import proc

        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="aj-", suffix=".txt") as file:
            file.write(words)
            file.flush()
            proc.run_here([*pager, file.name])

    def _pager(self) -> list[str] | None:
        import shlex

        from aj.base import proc

        if not self.streams.out_is_terminal or self.settings.env.get("PAGER") in ("", "cat"):
            return None
        words = shlex.split(self.settings.get("PAGER") or "less")
        return words if proc.find(words[0], self.settings.get("PATH")) else None

    def item(self, item: Item) -> None:
        """Write one compact JSON line: a step of a stream."""
        self._out_bytes(_json(item, indent=None) + b"\n")

    def line(self, words: str) -> None:
        """Write one line of the answer as text."""
        self._out(f"{text.visible(words)}\n")

    def verbatim(self, data: bytes) -> None:
        """Write bytes of a program: as they are to a pipe; to a terminal colours pass and the rest is shown."""
        if self.streams.out_is_terminal:
            data = text.log_line(text.decoded(data)).encode("utf-8", "backslashreplace")
        self._out_bytes(data)

    def raw(self, data: bytes) -> None:
        """Write bytes exactly as they are."""
        self._out_bytes(data)

    def _machine(self, whole: Mapping[str, Json]) -> None:
        if self.format is Format.YAML:
            from aj.template import dump  # 20 ms, only for this format

            self._out_bytes(dump.dump(whole).encode("utf-8", "backslashreplace"))
        else:
            self._out_bytes(_json(whole, indent=2) + b"\n")

    def bare(self, document: Document) -> None:
        """Write a document's body alone: for what is a document of its own kind already."""
        if self.format is Format.TABLE:
            self._out_bytes(_json(document.body, indent=2) + b"\n")
        else:
            self._machine(document.body)

    # talk

    def note(self, words: str) -> None:
        """Say something that a quiet caller does not want to hear."""
        if not self.quiet:
            self._err(words)

    def progress(self, words: str) -> None:
        """Say what happens now, in one line. Never moves the cursor."""
        self.note(words)

    def detail(self, words: str) -> None:
        """Say how something was decided, for a verbose caller."""
        if self.verbose:
            self._err(words)

    def warn(self, message: str, *, code: str = "warning", file: str | None = None, line: int | None = None) -> None:
        """Warn once: a line on stderr, and an item in the JSON document."""
        notice = Notice(code, message, file, line)
        if notice in self.warnings:
            return
        self.warnings.append(notice)
        place = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        self._err(f"aj: warning: {place}{message}")

    def trouble(self, words: str, hint: str | None = None) -> None:
        """Say an error that does not end the command."""
        self._err(f"aj: {words}")
        if hint:
            self._err(f"hint: {hint}")

    def error(self, error: AjError, partial: Sequence[Item] = (), *, here: Path | None = None) -> None:
        """Say an error: a line and its hint on stderr, and in a machine format the one document on stdout.

        What it carries is told as well: warnings before it, other errors behind it, each with its own hint.

        A place in a file is written relative to `here` when it lies below it.
        """
        place = error.place
        if place and here:
            place = Place(paths.shown(place.file, here), place.line, place.column)
        words = f"{place}: {error.message}" if place else error.message
        warnings, others = _further(error, here)
        for told, hint in (*warnings, (words, error.hint), *others):
            self._err("aj: " + told.replace("\n", "\n  "))
            if hint:
                self._err(f"hint: {hint}")
        if self.format is Format.JSONL:
            self.item(failure(error, partial))
        elif self.format.is_machine:
            self._machine(failure(error, partial))

    # questions

    @property
    def may_ask(self) -> bool:
        """Whether a person is there to answer."""
        return self.streams.asks and not self.no_input and not self.settings.flag("AJ_NO_INPUT")

    def ask(self, question: str, option: str) -> str:
        """Ask for a word. Raises UserError naming the option when nobody can answer or nobody does."""
        if not self.may_ask:
            raise UserError(f"{question}: no terminal to ask on", hint=f"give `{option}`")
        answer = self._answer(question)
        if not answer:
            raise UserError(f"{question}: no answer", hint=f"give `{option}`")
        return answer

    def propose(self, question: str, proposal: str, option: str) -> str:
        """Ask for a word for which there is a proposal, taken by an empty line. Raises as `ask`, also at its end."""
        if not self.may_ask:
            return self.ask(question, option)
        answer = self._answer(f"{question} [{proposal or 'none'}]")
        if answer is None:
            raise UserError(f"{question}: no answer", hint=f"give `{option}`")
        return answer.strip() or proposal

    def confirm(self, question: str, *, yes: bool) -> None:
        """Go on only when the person agrees. Raises Refused without a terminal, on another answer and at its end."""
        if yes:
            return
        if not self.may_ask:
            raise Refused(f"{question}: not without a yes", hint="add `--yes`")
        if (self._answer(f"{question} [y/N]") or "").strip().lower() not in ("y", "yes"):
            raise Refused("not done: the answer was not yes")

    def _answer(self, question: str) -> str | None:
        self._err_bytes(text.visible(f"{question}: ").encode("utf-8", "backslashreplace"))
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None

    # form

    def look(self) -> table.Look:
        """Return how a table may look on this stdout."""
        terminal = self.streams.out_is_terminal
        taste = self.taste()
        return table.Look(
            times=Times(self.clock.now(), taste.zone),
            width=self._width() if terminal else None,
            colour=self._is_coloured(terminal, taste.color),
            ellipsis="…" if self.streams.encoding.lower().replace("-", "").startswith("utf") else "~",
        )

    def _is_coloured(self, terminal: bool, color: str) -> bool:
        """Tell whether a table on stdout may have colour."""
        if self.no_color or color == "never" or self.settings.get("TERM") == "dumb":
            return False
        if color == "always" or self.settings.get("FORCE_COLOR") or self.settings.get("CLICOLOR_FORCE"):
            return True
        return terminal and not self.settings.get("NO_COLOR")

    def _height(self) -> int:
        return self._size()[1]

    def _width(self) -> int:
        columns = self.settings.get("COLUMNS")
        if columns and columns.isdigit() and int(columns) > 0:
            return int(columns)
        return self._size()[0]

    def _size(self) -> tuple[int, int]:
        """Columns and lines of the terminal behind stdout."""
        try:
            size = os.get_terminal_size(self.streams.out.fileno() if self.streams.out else 1)
        except OSError:
            return DEFAULT_SIZE
        return size.columns or DEFAULT_SIZE[0], size.lines or DEFAULT_SIZE[1]

    def moment(self, at: str) -> str:
        """Write an RFC 3339 time: on a terminal in the user's zone, without fractions; else as it is."""
        terminal = self.streams.out_is_terminal or self.streams.err_is_terminal
        return self.look().times.local(at) if terminal and not self.format.is_machine else at

    # bytes

    def _out(self, words: str) -> None:
        self._out_bytes(words.encode(self.streams.encoding, "backslashreplace"))

    def _out_bytes(self, data: bytes) -> None:
        """Raises BrokenPipeError when the reader has gone, AjError when the disk behind stdout is full."""
        if self.streams.out is None:
            raise BrokenPipeError(errno.EPIPE, "stdout is closed")
        try:
            self.streams.out.write(data)
            self.streams.out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            if error.errno == errno.EBADF:
                raise BrokenPipeError(errno.EPIPE, "stdout is closed") from error
            self.streams.out = None
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise AjError(f"cannot write to stdout: {reason}", code="cannot-write") from error

    def _err(self, words: str) -> None:
        self._err_bytes(text.visible(words).encode("utf-8", "backslashreplace") + b"\n")

    def _err_bytes(self, data: bytes) -> None:
        if self.streams.err is None:
            return
        try:
            self.streams.err.write(data)
            self.streams.err.flush()
        except OSError:
            self.streams.err = None  # nobody listens any more: the answer on stdout still counts


Told = tuple[str, "str | None"]


def _further(error: AjError, here: Path | None) -> tuple[list[Told], list[Told]]:
    """Write what else an error about a file carries, each with its place and its hint: warnings, then errors."""
    carried = error.details.get("issues")
    warnings: list[Told] = []
    errors: list[Told] = []
    for issue in carried if isinstance(carried, list) else ():
        place = Place(issue["file"], issue["line"] or 0, issue["column"] or 0) if issue["file"] else None
        if (place, issue["message"]) == (error.place, error.message):
            continue
        if place and here:
            place = Place(paths.shown(place.file, here), place.line, place.column)
        words = f"{place}: {issue['message']}" if place else str(issue["message"])
        if issue["level"] == "error":
            errors.append((words, issue["hint"]))
        elif issue["level"] == "warning":
            warnings.append((f"warning: {words}; {issue['hint']}" if issue["hint"] else f"warning: {words}", None))
    return warnings, errors


def _items(document: Document) -> Sequence[Item]:
    """The lines of a document in `jsonl`: its items, or the whole when it is no list."""
    for key in ("items", "item"):
        value = document.body.get(key)
        if isinstance(value, list | tuple):
            return [item for item in value if isinstance(item, Mapping)]
        if isinstance(value, Mapping):
            return [value]
    return [document.body]


def _json(value: Mapping[str, Json], indent: int | None) -> bytes:
    """One JSON value in UTF-8; a lone surrogate (an odd file name) becomes its escape."""
    separators = (",", ":") if indent is None else None
    words = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=_default)
    return words.encode("utf-8", "backslashreplace")


def _default(value: object) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")
