"""Files that people write, read whole: never waiting for a pipe, and never more than such a file may have."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read(path: Path, most_bytes: int) -> bytes:
    """Return the bytes of a plain file, or of one that a link leads to.

    Raises FileNotFoundError when nothing has that name, and OSError with its words in `strerror`, also for what is no
    plain file, is larger, or is a link that leads nowhere.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise OSError(errno.EINVAL, "it is a link that leads nowhere", str(path)) from None
        raise
    with os.fdopen(handle, "rb") as file:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        found = file.read(most_bytes + 1)
    if len(found) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
    return found
