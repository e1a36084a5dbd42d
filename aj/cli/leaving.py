"""Ctrl-C and SIGTERM while a command only watches: say once what goes on without it, and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aj.cli.context import Context


@contextmanager
def telling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` when somebody ends the block from outside; the ending itself goes on."""
    try:
        yield
    except Exception:
        raise
    except BaseException:  # Ctrl-C and SIGTERM are no errors
        tell()
        raise


def goes_on(ctx: Context, names: tuple[str, ...]) -> Callable[[], None]:
    """Return what says that these jobs do not end with the command that watched them."""
    what = "goes on" if len(names) == 1 else "go on"
    return lambda: ctx.screen.note(f"{', '.join(names)} {what} without this command: `aj terminate` ends a job")
