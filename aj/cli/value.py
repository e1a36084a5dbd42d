"""A value that nobody may see: from a file or from stdin, never from the command line, which everybody can read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from aj.base.errors import OptionError, UserError

if TYPE_CHECKING:
    from aj.cli.context import Context

LARGEST = 64 << 10  # bytes


def read(ctx: Context, file: str | None, how: str) -> str:
    """Read a value from a file, or from stdin by None or `-`; one line end behind it is no part of it.

    Raises OptionError for a file that cannot be read, UserError when there is nothing, or a person would have to
    type it where it can be seen. `how` is the command, for the hint.
    """
    if file is not None and file != "-":
        try:
            raw = (ctx.directory / file).read_bytes()[: LARGEST + 1]
        except OSError as error:
            raise OptionError(f"--from {file}: {error.strerror}") from error
    else:
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError(
                "the value is read from stdin, and a terminal would show it", hint=f"`{how} < FILE`", code="no-value"
            )
        raw = sys.stdin.buffer.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UserError(f"the value is longer than {LARGEST} bytes", code="bad-value")
    try:
        value = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise UserError("the value is no UTF-8 text", code="bad-value") from error
    if not value:
        raise UserError("the value is empty", hint=f"`{how} < FILE`", code="no-value")
    return value
