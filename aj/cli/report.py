"""What nobody expected: one line on stderr, an error document where one was asked for, and a file to attach.

The file holds the traceback, the words of the command with secrets taken out, and the versions.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import clock, paths, redact
from aj.base.errors import EXIT_UNEXPECTED, AjError
from aj.cli import words
from aj.store import atomic
from aj.store.layout import Layout
from aj.version import VERSION
from aj.view.screen import Format, Screen, Streams
from aj.wire.errors import Unexpected

if TYPE_CHECKING:
    from aj.base.settings import Settings


def tell(error: Exception, argv: Sequence[str], settings: Settings) -> int:
    """Report an unexpected error and return its exit code."""
    trace = "".join(traceback.format_exception(error))
    what = redact.text(f"{type(error).__name__}: {error}".strip().removesuffix(":"))
    where = _keep(trace, argv, settings)
    screen = Screen(Streams.of_process(), settings, Format(words.guess_format(argv, settings.get("AJ_OUTPUT"))))
    hint = f"attach {where} to a report" if where else "set AJ_DEBUG=1 to see where"
    if _wants_traces(settings):
        screen.note(trace.rstrip())
    try:
        screen.error(Unexpected(what, hint=hint, details={"report": str(where) if where else None}))
    except (BrokenPipeError, AjError):
        pass  # stdout cannot be written any more; stderr and the file tell it
    return EXIT_UNEXPECTED


def _keep(trace: str, argv: Sequence[str], settings: Settings) -> Path | None:
    """Write the report file; None when there is no place for it."""
    now = clock.SYSTEM.now()
    try:
        folder = Layout(paths.folders(settings)).reports
        atomic.make_folder(folder)
        path = folder / f"{clock.rfc3339(now).replace(':', '')[:17]}-{os.getpid()}.txt"
        head = f"aj {VERSION}, Python {sys.version.split()[0]}, {sys.platform}\n{clock.rfc3339(now)}\n"
        line = redact.text(" ".join(argv))
        atomic.write_bytes(path, f"{head}aj {line}\n\n{redact.text(trace)}".encode("utf-8", "backslashreplace"))
    except AjError:
        return None
    return path


def _wants_traces(settings: Settings) -> bool:
    try:
        return settings.debug
    except AjError:
        return False
