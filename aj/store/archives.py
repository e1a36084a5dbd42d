"""Packed code on disk: kept while a submission may still need it, gone when nobody has named it for long.

An archive has the name of its digest, so two submissions of the same tree share one file. Whoever packs
claims it until his ticket is stored; what fails before that leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Set
from pathlib import Path

from aj.base.errors import AjError, Refused
from aj.model.code import CodeRef
from aj.store import atomic
from aj.store.layout import Layout

KEEP_S = 30 * 24 * 3600.0  # an archive that nobody names any more
KEEP_BYTES = 20 * 1024**3  # all of those together
SUFFIX = ".tar.gz"


def gone(digest: str) -> Refused:
    """Say that the code of a submission is no longer there."""
    return Refused(
        f"the submitted code {digest[:12]} is no longer kept", code="code-gone", hint="submit it again with `aj run`"
    )


class Archives:
    """The folder of archives in the hands of one daemon. Safe between threads."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._guard = threading.Lock()
        self._claims: Counter[str] = Counter()
        self._relied_on: set[str] = set()  # a claim of them ended well while others were still open

    @contextlib.contextmanager
    def claim(self, pack: Callable[[], CodeRef]) -> Iterator[CodeRef]:
        """Pack, and keep the archive from being removed during the block.

        When the block fails and the archive is new and nobody else wants it, it is removed. Raises
        whatever packing raises, AjError when the disk refuses.
        """
        before = self._digests()
        code = self._claimed(pack)
        try:
            yield code
        except BaseException:
            self._end(code.digest, drop=code.digest not in before)
            raise
        with self._guard:
            self._relied_on.add(code.digest)
        self._end(code.digest, drop=False)

    def _claimed(self, pack: Callable[[], CodeRef]) -> CodeRef:
        while True:
            code = pack()
            with self._guard:
                if self._layout.archive(code.digest).exists():
                    self._claims[code.digest] += 1
                    return code
            # whoever made it failed and removed it just now: pack again

    def _end(self, digest: str, *, drop: bool) -> None:
        with self._guard:
            self._claims[digest] -= 1
            if self._claims[digest]:
                return
            del self._claims[digest]
            if drop and digest not in self._relied_on:
                with contextlib.suppress(AjError):  # a leftover is pruned later
                    atomic.remove(self._layout.archive(digest))
            self._relied_on.discard(digest)

    def _digests(self) -> set[str]:
        return {path.name.removesuffix(SUFFIX) for path in _archives(self._layout.code)}

    def prune(
        self, named: Set[str], *, now: float, keep_s: float = KEEP_S, keep_bytes: int = KEEP_BYTES
    ) -> list[tuple[str, int]]:
        """Remove archives that nothing names and that are too old or too many, oldest first.

        `named` are the digests that a ticket or a job may still need. Returns digest and bytes of each.
        """
        with self._guard:
            atomic.sweep(self._layout.code) if not self._claims else None
            spare = [
                (status.st_mtime, status.st_size, path)
                for path in _archives(self._layout.code)
                if path.name.removesuffix(SUFFIX) not in named | self._claims.keys() and (status := _status(path))
            ]
            return [_remove(path, size) for path, size in _surplus(spare, now - keep_s, keep_bytes)]


def _surplus(spare: list[tuple[float, int, Path]], oldest: float, keep_bytes: int) -> list[tuple[Path, int]]:
    total = sum(size for _, size, _ in spare)
    found = []
    for touched_at, size, path in sorted(spare):
        if touched_at >= oldest and total <= keep_bytes:
            break
        found.append((path, size))
        total -= size
    return found


def _remove(path: Path, size: int) -> tuple[str, int]:
    atomic.remove(path)
    return path.name.removesuffix(SUFFIX), size


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None  # removed by hand just now


def _archives(folder: Path) -> list[Path]:
    try:
        return [folder / entry.name for entry in os.scandir(folder) if entry.name.endswith(SUFFIX)]
    except FileNotFoundError:
        return []
