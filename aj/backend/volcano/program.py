"""The program of a pod: one static text for all jobs of a release, put together from the files in `scripts/`.

What differs between two jobs travels as environment variables. The cluster replaces `$(NAME)` in arguments and
values, so whatever must arrive as it is goes through `escaped`.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

_FOLDER = Path(__file__).parent / "scripts"
# The order in which the parts stand: what is called later is defined before the last one, which runs everything.
PARTS = ("aj_ranks.sh", "aj_storage.sh", "aj_blob.sh", "aj_code.sh", "aj_pod.sh")
SHELL = ("/bin/bash", "-c")
# The cluster halves `$$` wherever it stands and looks at a `$` before `(`; before a letter outside ASCII some
# releases cut that letter in two. A lone `$` before anything else arrives as it is.
_SPECIAL = re.compile(r"\${2,}|\$(?=[(\x80-\U0010ffff])")
_COMMENT = re.compile(r"^[ \t]*#.*\n|^[ \t]*\n", re.MULTILINE)


@functools.cache
def text() -> str:
    """Return the program. Lines that are only comments stay here: a manifest has a size limit."""
    return "".join(_COMMENT.sub("", (_FOLDER / part).read_text()) for part in PARTS)


@functools.cache
def argument() -> str:
    """Return the program as it stands in a manifest."""
    return escaped(text())


def escaped(value: str) -> str:
    """Return a text so that it arrives in the container as it is."""
    return _SPECIAL.sub(lambda found: found[0] * 2, value)
