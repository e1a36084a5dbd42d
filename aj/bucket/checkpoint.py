"""Checkpoints: a folder of a job into its prefix of a bucket and back, always as it was at one moment.

What is stored never changes: bytes first, then the manifest that names them, then, on the condition that nobody
else did meanwhile, the head that names the manifests. A writer that is killed anywhere leaves the checkpoints
that were complete. A restore takes the newest of them, so a file that was deleted does not come back, and a
damaged one gives way to the one before.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from aj.base import crash
from aj.base.errors import AjError, NotFound, Refused
from aj.base.noun import dataclass
from aj.bucket import digest, fetch, manifest, scan
from aj.bucket.digest import Moving
from aj.bucket.fetch import Look
from aj.bucket.manifest import Entry, Head, Manifest
from aj.bucket.scan import File, Opened, Tree
from aj.bucket.storage import Bytes, Storage, objects
from aj.bucket.transfer import Carried, Pace, Progress, carry
from aj.model.bucket import KEEP, Stored
from aj.store import atomic

TRIES = 3  # within one save, for a folder that is written to
PAUSE_S = 1.0  # between them
PATIENCE = 3  # saves that are given up before files are taken one by one, for one that is never still
FRESH_NS = 2_000_000_000  # a file changed so shortly before it was read may change again without showing it
LARGEST_NOTE = 256 << 20  # bytes of a manifest; a million files need less


@dataclass(frozen=True)
class Saved:
    """What one save did: `checkpoint` is the newest complete one; `left` are names that cannot be stored."""

    checkpoint: Manifest
    is_new: bool
    kept: int
    left: tuple[str, ...] = ()
    by_file: bool = False


class Checkpoint:
    """The checkpoints of one job under one prefix. For one writer at a time; a second one is refused by the head."""

    def __init__(self, storage: Storage, root: Path, *, keep: int = KEEP, attempt: int = 1) -> None:
        self._storage = storage
        self._root = root
        self._keep = keep
        self._attempt = attempt
        self._etag: str | None = None
        self._kept: dict[str, Manifest] = {}
        self._known: dict[str, int] = {}
        self._is_read = False
        self._given_up = 0
        self._guard = threading.Lock()

    @property
    def newest(self) -> Manifest | None:
        """The newest complete checkpoint that is known."""
        return next(iter(self._kept.values()), None)

    @property
    def kept(self) -> int:
        """How many complete ones are known."""
        return len(self._kept)

    def look(self, pace: Pace) -> None:
        """Read which checkpoints there are. Raises AjError when none of those that the head names is whole."""
        try:
            found = pace.insist(lambda: self._storage.head(manifest.HEAD))
        except NotFound:
            if pace.insist(self._storage.look) is None:
                raise
            self._etag, self._kept = None, {}
        else:
            raw = pace.insist(lambda: self._read(found))
            names = manifest.head(raw, f"{self._storage.label}/{manifest.HEAD}").manifests
            self._etag, self._kept = found.etag, self._manifests(names, pace)
        self._known = {one.name: one.size_bytes for one in objects(self._storage, "blobs/")}
        self._is_read = True

    def _read(self, found: Stored) -> bytes:
        if found.size_bytes > LARGEST_NOTE:
            raise AjError(f"{self._storage.label}/{found.name} is too large", code="damaged-checkpoint")
        return self._storage.read(found.name, 0, found.size_bytes, found.etag or None)

    def _manifests(self, names: Sequence[str], pace: Pace) -> dict[str, Manifest]:
        found: dict[str, Manifest] = {}
        damage: AjError | None = None
        for name in names:
            where = f"{self._storage.label}/{name}"
            try:
                raw = pace.insist(lambda name=name: self._read(self._storage.head(name)))  # type: ignore[misc]
                found[name] = manifest.manifest(raw, where)
            except NotFound as error:
                damage = AjError(f"{where} is gone", code="damaged-checkpoint")
                damage.__cause__ = error
            except AjError as error:
                if error.code != "damaged-checkpoint":
                    raise
                damage = error
        if damage is not None and not found:
            raise damage
        return found

    # saving

    def save(self, pace: Pace, progress: Progress | None = None) -> Saved:
        """Store the folder as it is now, unless the newest checkpoint says the same.

        Raises Moving when it is written to all the time, Refused when another writer was here, Stopped, and what
        the storage raises; the complete checkpoints then stay.
        """
        if not self._is_read:
            self.look(pace)
        if self.newest is not None and self.newest.attempt > self._attempt:
            raise Refused(f"a later start of the job stores its checkpoints in {self._storage.label}", code="fenced")
        for _ in range(TRIES - 1):
            try:
                return self._save(pace, progress or Progress(), by_file=False)
            except Moving:
                pace.clock.wait(pace.stop, PAUSE_S)
                pace.check()
        try:
            return self._save(pace, progress or Progress(), by_file=self._given_up >= PATIENCE)
        except Moving:
            self._given_up += 1
            raise

    def _save(self, pace: Pace, progress: Progress, *, by_file: bool) -> Saved:
        at = pace.clock.now()
        tree = scan.scan(self._root)
        entries = self._store(tree, pace, progress, by_file=by_file)
        if not by_file:
            _check_still(tree, scan.scan(self._root))
            self._given_up = 0
        newest = self.newest
        made = Manifest(
            number=newest.number + 1 if newest else 1,
            at=at,
            attempt=self._attempt,
            files=entries,
            folders=tree.folders,
            links=tree.links,
        )
        if newest is not None and _says(newest) == _says(made):
            return Saved(newest, False, self.kept, tree.left, by_file)
        crash.point("checkpoint.before-manifest")
        self._publish(made, pace)
        return Saved(made, True, self.kept, tree.left, by_file)

    def _store(self, tree: Tree, pace: Pace, progress: Progress, *, by_file: bool) -> tuple[Entry, ...]:
        """Bring the bytes of all files into the bucket and return what a manifest says of them."""
        newest = self.newest
        before = {entry.name: entry for entry in newest.files} if newest else {}
        surely_ns = int(newest.at * 1e9) - FRESH_NS if newest else 0
        due: list[File] = []
        for file in tree.files:
            known = before.get(file.name)
            if known is None or (known.size, known.mtime_ns) != (file.size, file.mtime_ns) or file.mtime_ns > surely_ns:
                due.append(file)
        progress.expect(len(due), sum(file.size for file in due))

        def store(file: File) -> Entry:
            return self._store_one(file, progress, by_file=by_file)

        stored: Carried[File, Entry] = carry(due, store, pace)
        fresh = {entry.name: entry for entry in stored.strictly()}
        return tuple(
            fresh[file.name] if file.name in fresh else _with_mode(before[file.name], file) for file in tree.files
        )

    def _store_one(self, file: File, progress: Progress, *, by_file: bool) -> Entry:
        try:
            opened = Opened(self._root, file.name)
        except OSError as error:
            raise Moving(f"`{file.name}` cannot be opened: {error.strerror}") from error
        with opened:
            found = digest.of(opened)
            name = manifest.blob(found.sha256)
            if self._known.get(name) == found.size:
                progress.skip(1, found.size)
            else:
                self._storage.put(name, digest.Checked(opened, found), progress.moved)
                with self._guard:
                    self._known[name] = found.size
                progress.done()
                crash.point("checkpoint.after-blob")
            if not by_file and opened.has_changed():
                raise Moving(f"`{file.name}` was written to while it was uploaded")
            return Entry(file.name, found.size, found.sha256, opened.mtime_ns, file.mode)

    def _publish(self, made: Manifest, pace: Pace) -> None:
        """Write the manifest, then the head; then remove what no manifest needs any more."""
        name = f"manifests/{made.number:08d}-{os.urandom(4).hex()}.json"
        pace.insist(lambda: self._storage.put(name, Bytes(manifest.dump(made))))
        crash.point("checkpoint.before-head")
        kept = dict([(name, made), *list(self._kept.items())[: self._keep - 1]])
        self._etag = self._swap(Head(tuple(kept)), pace)
        gone, self._kept = self._kept.keys() - kept.keys(), kept
        crash.point("checkpoint.after-head")
        self._forget(gone, pace)

    def _swap(self, head: Head, pace: Pace) -> str:
        raw = manifest.dump(head)
        try:
            return pace.insist(lambda: self._storage.swap(manifest.HEAD, raw, self._etag)).etag
        except Refused as error:
            if error.code != "conflict":
                raise
            found = pace.insist(lambda: self._storage.head(manifest.HEAD))
            if pace.insist(lambda: self._read(found)) == raw:
                return found.etag  # our own request arrived, and only its answer was lost
            self._is_read = False
            raise Refused(f"another writer stores checkpoints in {self._storage.label}", code="other-writer") from error

    def _forget(self, manifests: set[str], pace: Pace) -> None:
        """Remove manifests that do not count any more, and bytes that none of the others needs."""
        needed = manifest.named(tuple(self._kept.values()))
        spare = [*manifests, *(name for name in self._known if name not in needed)]
        for name in carry(spare, self._remove, pace).done:
            self._known.pop(name, None)

    def _remove(self, name: str) -> str:
        self._storage.remove(name)
        return name

    # restoring

    def holds(self, pace: Pace) -> bool:
        """Tell whether the newest complete checkpoint has all that is in the folder, by size and time of its files.

        Raises as `look`, and AjError when the folder cannot be read.
        """
        tree = scan.scan(self._root)
        if not (tree.files or tree.links or tree.left):
            return True
        self.look(pace)
        if self.newest is None or tree.left:
            return False
        kept = {(entry.name, entry.size, entry.mtime_ns) for entry in self.newest.files}
        there = {(file.name, file.size, file.mtime_ns) for file in tree.files}
        return there <= kept and set(tree.links) <= set(self.newest.links)

    def restore(self, pace: Pace, progress: Progress | None = None) -> Manifest | None:
        """Make the folder what the newest complete checkpoint says; empty when there is none.

        Returns that checkpoint. Raises Stopped, what the storage raises, and AjError when the disk refuses.
        """
        self.look(pace)
        told = progress or Progress()
        atomic.make_folder(self._root)
        damage: AjError | None = None
        for found in self._kept.values():
            try:
                self._restore(found, pace, told)
                return found
            except AjError as error:
                if error.code not in ("damaged-checkpoint", "no-such-object"):
                    raise
                damage = error
        fetch.clear(self._root)
        if damage is not None:
            raise damage
        return None

    def _restore(self, found: Manifest, pace: Pace, progress: Progress) -> None:
        fetch.clear(self._root)
        progress.expect(len(found.files), found.size_bytes)
        try:
            for name in found.folders:
                (self._root / name).mkdir(mode=0o755, parents=True, exist_ok=True)
            carry(found.files, lambda entry: self._bring(entry, pace, progress), pace).strictly()
            for name, target in found.links:  # last, so that nothing is written through one
                os.symlink(target, self._root / name)
        except OSError as error:
            raise atomic.cannot_write(self._root, error) from error

    def _bring(self, entry: Entry, pace: Pace, progress: Progress) -> None:
        name = manifest.blob(entry.sha256)
        target = self._root / entry.name
        try:
            fetch.fetch(
                self._storage,
                Stored(name, entry.size, "", 0.0),
                target,
                pace,
                progress,
                Look(entry.mode | 0o600, entry.mtime_ns),
            )
        except (NotFound, Refused) as error:
            if error.code == "no-such-bucket" or (isinstance(error, Refused) and error.code != "conflict"):
                raise
            raise AjError(f"{self._storage.label}/{name} is gone or cut short", code="damaged-checkpoint") from error
        with Opened(self._root, entry.name) as opened:
            if digest.of(opened).sha256 != entry.sha256:
                raise AjError(f"{self._storage.label}/{name} has other bytes than its name", code="damaged-checkpoint")
        progress.done()


def _with_mode(entry: Entry, file: File) -> Entry:
    return Entry(entry.name, entry.size, entry.sha256, entry.mtime_ns, file.mode)


def _says(checkpoint: Manifest) -> tuple[object, ...]:
    """What a checkpoint holds, whenever and by whom it was made."""
    return checkpoint.files, checkpoint.folders, checkpoint.links


def _check_still(before: Tree, after: Tree) -> None:
    """Raise Moving when a folder changed between two looks: its files may be of two moments."""
    if before == after:
        return
    earlier = {file.name: file for file in before.files}
    changed = [file.name for file in after.files if earlier.get(file.name) != file]
    what = f"`{changed[0]}`" if changed else "a file or a link"
    raise Moving(f"{what} changed while the folder was uploaded")
