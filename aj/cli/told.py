"""Showing what Azure told: the answer, then what could not be read and how old it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aj.view import told as view
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Document
    from aj.wire.azure import Told


def show(ctx: Context, document: Document, told: Told, *, refresh: bool = False) -> int:
    """Print an answer; below a table its warnings, in a document among its keys. Returns the exit code.

    That is 1 when a new answer was asked for and none came.
    """
    is_table = ctx.screen.format is Format.TABLE
    if is_table:
        ctx.screen.show(document)
    for code, words in view.warnings(told):
        ctx.screen.warn(words, code=code)
    if not is_table:
        ctx.screen.show(document)
    return 1 if refresh and told.problem is not None else 0
