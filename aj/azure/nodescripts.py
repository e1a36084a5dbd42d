"""The shell programs of a node: the bootstrap, which unpacks the code, and the runner, which is packed with it.

Both are the same bytes for every job of a release. What differs between jobs travels as variables, so no text
of a user becomes part of them: `AJ_SETUP` and `AJ_COMMAND` are shell lines, the rest are plain values.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from aj.base import units
from aj.base.errors import UserError

SCRIPTS = Path(__file__).parent / "scripts"
RUNNER = "aj_runner.sh"
PROGRAMS = ("AJ_SETUP", "AJ_COMMAND")
# Linux starts no program with a longer word or variable than 128 KiB; the runner adds lines of its own.
LONGEST = 128 * 1024 - 4096

# The statuses with which a process of a job ends when it was not the user's own program that ended it.
MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        110: "wrong input, no private folder on the node, or ranks that do not fit",
        111: "the node got another archive than was uploaded",
        112: "the node could not unpack the archive",
        113: "the process that ran the setup on the node died",
        114: "unpacking or the setup took longer than its limit",
        116: "a tool that was fetched is not the one that was expected",
        117: "the node has no program to download with",
        118: "storage could not be mounted",
        119: "what was written to storage could not be flushed at the end",
    }
)


@functools.cache
def bootstrap() -> bytes:
    """Return the bootstrap."""
    return (SCRIPTS / "aj_bootstrap.sh").read_bytes()


@functools.cache
def bootstrap_sha256() -> str:
    """Return the SHA-256 of the bootstrap: its name where the jobs fetch it."""
    return hashlib.sha256(bootstrap()).hexdigest()


@functools.cache
def members() -> Mapping[bytes, tuple[bytes, int]]:
    """Return what is packed with the code: path in the archive, then content and mode."""
    return MappingProxyType({RUNNER.encode(): ((SCRIPTS / RUNNER).read_bytes(), 0o755)})


def check(env: Mapping[str, str]) -> None:
    """Raise UserError when the setup or the command of a job is too long for a node to start it."""
    for name in PROGRAMS:
        size = len(env.get(name, "").encode())
        if size > LONGEST:
            what = "setup" if name == "AJ_SETUP" else "command"
            raise UserError(
                f"the {what} of the job is {units.size(size)} long, and no node starts more than {units.size(LONGEST)}",
                hint="put it into a script of the project, and run that",
            )
