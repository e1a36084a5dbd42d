"""The door: the words of the command line in, an exit code out.

The version is answered before anything is imported, so that asking costs no more than Python itself.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # importing `typing` for it would cost a quarter of the answer to `--version`
if TYPE_CHECKING:
    from typing import NoReturn


def console() -> NoReturn:
    """Run the command that this process was started with, and end the process."""
    sys.exit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    if argv in (["--version"], ["-V"]):
        return _tell_version()
    return _run(argv)


def _tell_version() -> int:
    from aj.version import VERSION

    try:
        os.write(1, f"aj {VERSION}\n".encode())
    except BrokenPipeError:
        return 0
    except OSError as error:
        sys.stderr.write(f"aj: cannot write to standard output: {error.strerror}\n")
        return 1
    return 0


def _run(argv: list[str]) -> int:
    import importlib

    # Nothing made while importing is garbage: looking for it would cost 5 % of a short command.
    gc.disable()
    app = importlib.import_module("aj.cli.app")
    gc.freeze()
    gc.enable()
    code: int = app.run(argv)
    return code
