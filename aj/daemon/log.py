"""The daemon's log: one line an entry, turned over before it grows large, secrets taken out.

The file is also standard output and error of the process, so that what the interpreter itself says
in its last moment stands there too. It therefore follows the file when the log is turned over.
"""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from pathlib import Path

from aj.base import redact, text
from aj.base.clock import Clock, rfc3339
from aj.base.settings import LOG_LEVELS
from aj.store import atomic

MAX_BYTES = 10 * 1024 * 1024
KEPT = 3  # daemon.log.1 to daemon.log.3


class Log:
    """Where the daemon writes what happens to it. Safe for several threads."""

    def __init__(self, path: Path, clock: Clock, *, level: str = "info", debug: bool = False) -> None:
        self._path = path
        self._clock = clock
        self._least = LOG_LEVELS.index(level)
        self._debug = debug
        self._lock = threading.Lock()
        self._handle = self._open()
        self._is_output = False

    def become_output(self) -> None:
        """Make the log standard output and error of this process."""
        with self._lock:
            self._is_output = True
            self._redirect()

    def hear_others(self) -> None:
        """Take in what other rooms say by the standard library's `logging`, and what a thread dies of."""
        import logging

        write, levels = self._write, {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning"}

        class Ear(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                write(levels.get(record.levelno, "error"), record.getMessage())

        logging.basicConfig(handlers=[Ear()], level=logging.WARNING, force=True)
        logging.getLogger("aj").setLevel(logging.DEBUG)
        threading.excepthook = self._hear_end

    def _hear_end(self, end: threading.ExceptHookArgs) -> None:
        """Write what a thread died of; the interpreter itself would write it with every secret in it."""
        who = end.thread.name if end.thread else "a thread"
        self.error(f"{who} ended: {end.exc_type.__name__}: {end.exc_value}", end.exc_value)

    def debug(self, words: str) -> None:
        """Write what only somebody who looks for a fault wants to know."""
        self._write("debug", words)

    def info(self, words: str) -> None:
        """Write what happened."""
        self._write("info", words)

    def warning(self, words: str) -> None:
        """Write what is odd."""
        self._write("warning", words)

    def error(self, words: str, error: BaseException | None = None) -> None:
        """Write what went wrong: where it came from, and the whole way there if AJ_DEBUG is set."""
        self._write("error", words)
        if error is None:
            return
        if self._debug:
            self._write("error", "".join(traceback.format_exception(error)).rstrip())
        elif spots := traceback.extract_tb(error.__traceback__):
            self._write("error", f"raised at {spots[-1].filename}:{spots[-1].lineno}")

    def _write(self, level: str, words: str) -> None:
        if LOG_LEVELS.index(level) < self._least:
            return
        entry = f"{rfc3339(self._clock.now())} {level} {redact.text(text.visible(words))}\n"
        with self._lock, contextlib.suppress(OSError):  # a full disk must not end the daemon
            self._turn_over()
            os.write(self._handle, entry.encode("utf-8", "backslashreplace"))

    def _open(self) -> int:
        atomic.make_folder(self._path.parent)
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, atomic.FILE_MODE)

    def _turn_over(self) -> None:
        if os.fstat(self._handle).st_size < MAX_BYTES:
            return
        for number in range(KEPT, 0, -1):
            younger = self._path.with_name(f"{self._path.name}.{number - 1}") if number > 1 else self._path
            with contextlib.suppress(FileNotFoundError):
                os.replace(younger, self._path.with_name(f"{self._path.name}.{number}"))
        os.close(self._handle)
        self._handle = self._open()
        self._redirect()

    def _redirect(self) -> None:
        if self._is_output:
            os.dup2(self._handle, 1)
            os.dup2(self._handle, 2)
