"""A process that saves one epoch after the other until somebody kills it: `python -m tests.bucket.keeper`.

    python -m tests.bucket.keeper ROOT FIRST dir FOLDER
    python -m tests.bucket.keeper ROOT FIRST azure URL CONTAINER

Each epoch is several files that belong together, one of which has another name each time. It writes the number of
every epoch that is saved for good. Epoch FIRST is the first; with `AJ_TEST_CRASH_LATER` it dies at that point of the
next one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aj.azure.datastores import Secret
from aj.azure.line import Place
from aj.base.settings import Settings
from aj.bucket.checkpoint import Checkpoint
from aj.bucket.folder import Folder
from aj.bucket.scope import Scope
from aj.bucket.storage import Storage
from aj.bucket.transfer import Pace
from tests.servers.azurite import ACCOUNT, KEY

SHARDS = 3


def storage(kind: str, *where: str) -> Storage:
    """Open the bucket that the words name."""
    if kind == "dir":
        return Folder(Path(where[0]), "torn")
    from aj.bucket.azure import Container

    url, container = where
    return Container(Place(ACCOUNT, container, f"{url}/{ACCOUNT}"), Secret("AccountKey", KEY), Settings({}))


def write_epoch(root: Path, epoch: int) -> None:
    """Write the files of an epoch in the place of those of the one before."""
    for old in root.glob("only-*"):
        old.unlink()
    for shard in range(SHARDS):
        (root / f"shard{shard}").write_text(f"{epoch} " * (shard + 1) * 50)
    (root / f"only-{epoch}").write_text(str(epoch))
    (root / "state").write_text(str(epoch))


def epoch_of(root: Path) -> int:
    """Return the epoch of a folder; fails when its files are of several."""
    epoch = int((root / "state").read_text())
    for shard in range(SHARDS):
        assert (root / f"shard{shard}").read_text() == f"{epoch} " * (shard + 1) * 50, "shards of two epochs"
    assert [path.name for path in root.glob("only-*")] == [f"only-{epoch}"], "a file of another epoch"
    return epoch


def main(root: Path, first: int, where: list[str]) -> None:
    saving = Checkpoint(Scope(storage(*where), "job-1/"), root, keep=2, attempt=first)
    epoch = first
    while True:
        write_epoch(root, epoch)
        saving.save(Pace())
        os.write(1, f"{epoch}\n".encode())
        if point := os.environ.pop("AJ_TEST_CRASH_LATER", None):
            os.environ["AJ_TEST_CRASH"] = point
        epoch += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
