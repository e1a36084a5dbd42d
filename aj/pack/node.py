"""The two programs that go with code to where it runs: one unpacks the archive, the other, inside it, runs the job.

Both are the same bytes for every job of a release: what differs between two jobs travels as environment variables.
"""

from __future__ import annotations

import functools
from pathlib import Path

from aj.model.code import CodePlan
from aj.pack import ssh, tar
from aj.pack.archive import Generated
from aj.pack.walk import RESERVED

_FOLDER = Path(__file__).parents[1] / "azure" / "scripts"  # read as data: nothing of a cloud is imported for it


@functools.cache
def bootstrap() -> bytes:
    """Return the program that unpacks an archive on a node and enters it."""
    return (_FOLDER / "aj_bootstrap.sh").read_bytes()


@functools.cache
def runner() -> bytes:
    """Return the program that runs one process of a job, from inside the unpacked code."""
    return (_FOLDER / "aj_runner.sh").read_bytes()


def added(plan: CodePlan, home: Path | None) -> Generated:
    """Return what an archive for such a node holds besides the code. Raises UserError as `ssh.payload`."""
    return {RESERVED: (runner(), tar.EXECUTABLE), **ssh.payload(plan, home)}
