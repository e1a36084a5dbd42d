"""The command line: find the command, bind its words, run it, and turn every error into one line and a code."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from aj.base import settings as environment
from aj.base.errors import EXIT_INTERRUPTED, AjError, OptionError
from aj.cli import bind, declare, hints, tree, words
from aj.cli.context import Context
from aj.view.screen import Format, Streams

if TYPE_CHECKING:
    from aj.base.settings import Settings
    from aj.cli.leaf import Command
    from aj.cli.words import Found


class Room(Protocol):
    """What every command's module holds: the words it takes, and what it does with them."""

    Options: type
    run: Callable[[object, Context], int]


def run(argv: Sequence[str], settings: Settings | None = None, streams: Streams | None = None) -> int:
    """Run one command line on this process's environment and streams, or on those given; return its exit code.

    Raises BrokenPipeError when the reader of stdout has gone, and whatever nobody expects.
    """
    ctx = Context(settings or environment.read(), streams or Streams.of_process())
    try:
        return _run(argv, ctx)
    except AjError as error:
        ctx.tell(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        if error.filename is None or isinstance(error, BrokenPipeError):
            raise
        return _refused_by_the_system(error, ctx)
    finally:
        ctx.close()


def _refused_by_the_system(error: OSError, ctx: Context) -> int:
    """Say which path the system refused, and why: that is nothing unexpected, and nobody's mistake to report."""
    told = AjError(f"{os.fsdecode(error.filename)}: {error.strerror}", code="refused-by-the-system")
    ctx.tell(told)
    return told.exit_code


def _run(argv: Sequence[str], ctx: Context) -> int:
    ctx.screen.format = Format(words.guess_format(argv, ctx.settings.get("AJ_OUTPUT")))  # until the line is understood
    found = words.find(argv)
    ctx.said(found.line.found, found.command)
    if found.command is None:
        return _help(found, ctx)
    chosen = room(found.command)
    declaration = declare.read(chosen.Options)
    try:
        line = words.take(found.rest, declaration, found.line)
    except OptionError as error:
        raise hints.behind_command(error, found.command.path) from None
    ctx.said(line.found, found.command)
    if line.found.help:
        return _help(found, ctx)
    if found.path in tree.GROUPS and declaration.needs_words and not (line.places or line.values):
        return _help(found, ctx)  # it is a group as well, and nothing was said of what to do
    ctx.choose_format()
    ctx.tell_unknown_names()
    return chosen.run(bind.bind(found.command, chosen.Options, declaration, line), ctx)


def room(command: Command) -> Room:
    """Import the module of a command."""
    return cast(Room, importlib.import_module(command.module))


def _help(found: Found, ctx: Context) -> int:
    from aj.cli import page

    ctx.screen.show(page.document(found.path))
    return 0
