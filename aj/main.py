"""The door: the words of the command line in, an exit code out.

The version is answered before anything is imported, so that asking costs no more than Python itself; the
daemon, the supervisors of jobs and the completion of a word do not pass through the command tree either.
Every command has the one net here below it: what nobody expected becomes a report file and exit code 70.
"""

from __future__ import annotations

import errno
import gc
import os
import sys

TYPE_CHECKING = False  # importing `typing` for it would cost a quarter of the answer to `--version`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


EXIT_UNEXPECTED, EXIT_INTERRUPTED, EXIT_TERMINATED = 70, 130, 143
# Words with which this program starts itself: the module whose `main(words)` they call.
INNER = {"__daemon": "aj.daemon.serve", "__supervise": "aj.backend.local.supervisor"}


class Terminated(BaseException):
    """Somebody sent SIGTERM: unwind, so that nothing half-made stays behind."""


def console() -> NoReturn:
    """Run the command that this process was started with, and end the process."""
    code = main(sys.argv[1:])
    _drop_a_closed_stdout()
    gc.freeze()  # what is left dies with the process: Python's last search for garbage would cost 5 % of a short one
    sys.exit(code)


def main(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    if argv in (["--version"], ["-V"]):
        return _tell_version()
    first = argv[0] if argv else ""
    if first in INNER:
        return _inner(INNER[first], argv[1:])
    return _guarded(_complete if first == "__complete" else _run, argv)


def _tell_version() -> int:
    from aj.version import VERSION

    return _write(f"aj {VERSION}\n")


def _write(text: str) -> int:
    """Write to stdout without the screen, for answers that must not wait for its import."""
    try:
        os.write(1, text.encode("utf-8", "backslashreplace"))
    except BrokenPipeError:
        return 0
    except OSError as error:
        if error.errno == errno.EBADF:
            return 0  # it was closed before we started: nobody wants to read
        sys.stderr.write(f"aj: cannot write to standard output: {error.strerror}\n")
        return 1
    return 0


def _inner(module: str, argv: list[str]) -> int:
    import importlib

    code: int = importlib.import_module(module).main(argv)
    return code


def _guarded(act: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run, and turn every way to end into an exit code."""
    import signal

    signal.signal(signal.SIGTERM, _terminate)
    try:
        return act(argv)
    except BrokenPipeError:
        return 0  # whoever read our answer has read enough
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Terminated:
        return EXIT_TERMINATED
    except Exception as error:  # noqa: BLE001 (the one net of every command)
        return _report(error, argv)


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


def _complete(argv: list[str]) -> int:
    from aj.base import settings
    from aj.cli import complete

    return _write(complete.answer(argv[1:], settings.read()))


def _run(argv: list[str]) -> int:
    import importlib

    # Hardly anything that a command makes is garbage: looking for it as often as by default costs 5 % of a short one.
    gc.set_threshold(50_000, 20, 100)
    app = importlib.import_module("aj.cli.app")
    code: int = app.run(argv)
    return code


def _report(error: Exception, argv: list[str]) -> int:
    """Say what nobody expected in one line, and keep the rest in a file to attach."""
    from aj.base import settings
    from aj.cli import report

    return report.tell(error, argv, settings.read())


def _drop_a_closed_stdout() -> None:
    """Python flushes at its end and would complain about a reader that has gone."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
