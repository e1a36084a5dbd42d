"""Old code in the container of a workspace: what no live job and no open ticket names may go.

Only archives that bear our own mark are looked at. Each is removed as it was listed: one that somebody wrote
anew meanwhile stays. What a submission from another machine finds there in the very same minute it may lose,
which is why only what is old is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set

from aj.azure import jobs
from aj.azure.arm import Session, Workspace
from aj.azure.blobs import Container, Kept
from aj.azure.delivery import Delivery

FOLDER = "LocalUpload/"
_ARCHIVE = re.compile(r"LocalUpload/([0-9a-f]{64})/code\.tar\.gz\Z")


def sha256_of(kept: Kept) -> str | None:
    """Return the hash in the name of an archive; None for another blob, such as a bootstrap."""
    found = _ARCHIVE.match(kept.name)
    return found[1] if found else None


def prune(
    session: Session,
    workspace: Workspace,
    delivery: Delivery,
    *,
    needed: Callable[[], Set[str]],
    before: float,
    dry_run: bool,
) -> tuple[Kept, ...]:
    """Remove our archives that were written before a moment (seconds since the epoch), or only name them.

    `needed` tells the hashes that open tickets name. Nothing is removed unless every live job of the workspace
    could be read. Raises as reading the datastore, listing jobs and removing do.
    """

    def act(container: Container) -> tuple[Kept, ...]:
        old = [kept for kept in container.ours(FOLDER) if sha256_of(kept) and kept.modified_at < before]
        if not old:
            return ()
        wanted = _named_by_jobs(session, workspace) | needed()
        free = sorted((kept for kept in old if sha256_of(kept) not in wanted), key=lambda kept: kept.modified_at)
        return tuple(kept for kept in free if dry_run or container.remove(kept))

    return delivery.within(session, workspace, act)


def _named_by_jobs(session: Session, workspace: Workspace) -> set[str]:
    every = jobs.each(session, workspace)
    return {job.code_sha256 for job in every if job.code_sha256 and not job.is_final}
