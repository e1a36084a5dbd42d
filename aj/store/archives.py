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
UNLIMITED = 1 << 62  # bytes: only the age counts
SUFFIX = ".tar.gz"


def gone(digest: str) -> Refused:
    """Say that the code of a submission is no longer there."""
    return Refused(
        f"the submitted code {digest[:12]} is no longer kept", code="code-gone", hint="submit it again with `aj run`"
    )


class Archives:
    """The folder of archives in the hands of one daemon. Safe between threads."""

    def __init__(self, layout: Layout) -> None:
        self._folder = layout.code
        self._guard = threading.Lock()
        self._claims: Counter[str] = Counter()
        self._relied_on: set[str] = set()  # a claim of them ended well while others were still open

    def digests(self) -> frozenset[str]:
        """Return the digests of all code that is kept."""
        return frozenset(_digest(path) for path in self._all())

    @contextlib.contextmanager
    def claim(self, pack: Callable[[], CodeRef]) -> Iterator[CodeRef]:
        """Pack, and keep the archive from being removed during the block.

        When the block fails and the archive is new and nobody else wants it, it is removed. Raises
        whatever packing raises, AjError when the disk refuses.
        """
        before = {path.name for path in self._all()}
        code = self._claimed(pack)
        try:
            yield code
        except BaseException:
            self._end(code.digest, kept=before)
            raise
        with self._guard:
            self._relied_on.add(code.digest)
        self._end(code.digest)

    def _claimed(self, pack: Callable[[], CodeRef]) -> CodeRef:
        while True:
            code = pack()
            with self._guard:
                if self._of(code.digest):
                    self._claims[code.digest] += 1
                    self._touch(code.digest)
                    return code
            # whoever made it failed and removed it just now: pack again

    def _end(self, digest: str, *, kept: Set[str] | None = None) -> None:
        """End a claim; after a failure the archives that are not among `kept` go, unless someone wants them."""
        with self._guard:
            self._claims[digest] -= 1
            if self._claims[digest]:
                return
            del self._claims[digest]
            if kept is not None and digest not in self._relied_on:
                for path in self._of(digest):
                    if path.name not in kept:
                        _remove(path)
            self._relied_on.discard(digest)

    def _touch(self, digest: str) -> None:
        """Count the age of an archive from its last use."""
        for path in self._of(digest):
            with contextlib.suppress(OSError):  # then it is packed again some day
                os.utime(path)

    def _all(self) -> list[Path]:
        try:
            with os.scandir(self._folder) as listed:
                return [self._folder / entry.name for entry in listed if entry.name.endswith(SUFFIX)]
        except FileNotFoundError:
            return []

    def _of(self, digest: str) -> list[Path]:
        return [path for path in self._all() if _digest(path) == digest]

    def prune(
        self, named: Callable[[], Set[str]], *, now: float, keep_s: float = KEEP_S, keep_bytes: int = KEEP_BYTES
    ) -> list[tuple[str, int]]:
        """Remove archives that nothing names and that are too old or too many, oldest first.

        `named` tells the digests that a ticket or a job may still need; it reads them all, so it is asked
        only when there is something to remove. Returns digest and bytes of what went.
        """
        with self._guard:
            gone = self._spare(named, now - keep_s, keep_bytes)
            return [(_digest(path), size) for path, size in gone if _remove(path)]

    def spare(self, named: Callable[[], Set[str]], *, now: float, keep_s: float) -> list[tuple[str, int]]:
        """Return digest and bytes of what `prune` would remove by its age; removes nothing."""
        with self._guard:
            return [(_digest(path), size) for path, size in self._spare(named, now - keep_s, UNLIMITED)]

    def _spare(self, named: Callable[[], Set[str]], oldest: float, keep_bytes: int) -> list[tuple[Path, int]]:
        every = [(status.st_mtime, status.st_size, path) for path in self._all() if (status := _status(path))]
        if not _surplus(every, oldest, keep_bytes):
            return []
        needed = named() | self._claims.keys()
        return _surplus([one for one in every if _digest(one[2]) not in needed], oldest, keep_bytes)


def _digest(path: Path) -> str:
    """The digest that begins an archive's name; a mark of added files may follow."""
    return path.name.partition(".")[0]


def _surplus(spare: list[tuple[float, int, Path]], oldest: float, keep_bytes: int) -> list[tuple[Path, int]]:
    total = sum(size for _, size, _ in spare)
    found = []
    for touched_at, size, path in sorted(spare):
        if touched_at >= oldest and total <= keep_bytes:
            break
        found.append((path, size))
        total -= size
    return found


def _remove(path: Path) -> bool:
    """Remove an archive and the note beside it; False when the disk refuses: the next round tries again."""
    try:
        atomic.remove(path)
        atomic.remove(path.with_name(path.name.removesuffix(SUFFIX) + ".json"))
    except AjError:
        return False
    return True


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None  # removed by hand just now
