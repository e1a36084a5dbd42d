"""Small findings kept for later: which workspace has a compute, and where a submission was sent.

Losing them costs a question, never a job: what is recalled is proved again, or taken as a hint only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from aj.base.clock import Clock
from aj.base.noun import dataclass
from aj.store import cache

KEPT = 2000  # findings of one kind; the oldest go first


@dataclass(frozen=True)
class Memory:
    """A folder of findings, one small file each."""

    folder: Path
    clock: Clock

    def recall(self, kind: str, *key: str, max_age_s: float | None = None) -> str | None:
        """Return what was kept, unless it is older than that; None when nothing was."""
        found = cache.get(self._file(kind, key), clock=self.clock)
        if found is None or not isinstance(found[0], str):
            return None
        return found[0] if max_age_s is None or found[1] <= max_age_s else None

    def keep(self, kind: str, *key: str, value: str) -> None:
        """Keep a finding. A disk that refuses costs nothing but the next question."""
        file = self._file(kind, key)
        cache.put(file, value, clock=self.clock)
        _thin_out(file.parent)

    def forget(self, kind: str, *key: str) -> None:
        """Drop a finding that proved wrong."""
        with contextlib.suppress(OSError):
            self._file(kind, key).unlink()

    def _file(self, kind: str, key: tuple[str, ...]) -> Path:
        return self.folder / kind / f"{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:32]}.json"


def _thin_out(folder: Path) -> None:
    """Remove the oldest findings when there are far too many; someone else may do the same at once."""
    with contextlib.suppress(OSError):
        with os.scandir(folder) as listed:
            files = [entry for entry in listed if entry.name.endswith(".json")]
        if len(files) <= KEPT + KEPT // 10:  # not at every single one above it
            return
        files.sort(key=lambda entry: entry.stat().st_mtime_ns)
        for entry in files[: len(files) - KEPT]:
            os.unlink(entry.path)
