"""The only use of `filelock`: a lock as a `with`, with a word for who holds it.

Order of taking, when two are held: project ownership, ticket, journal, job. Never the reverse. A lock
is held for a file write, never across a network call; project ownership alone is held for the life of
a daemon. Beside `KEY.lock` stands `KEY.json` with the holder, for the message of whoever is refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aj.base import proc
from aj.base.clock import SYSTEM, rfc3339
from aj.base.errors import Refused
from aj.model.json import Json
from aj.store import atomic

POLL_S = 0.005  # the default of 50 ms would make sixteen writers wait seconds


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, as it told itself."""

    pid: int
    since: str
    note: str


def _open(path: Path, timeout_s: float) -> object:
    import filelock  # 50 ms, only where a lock is taken

    atomic.make_folder(path.parent)
    lock = filelock.FileLock(str(path), mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=timeout_s, poll_interval=POLL_S)
    except filelock.Timeout:
        return None
    except OSError as error:
        raise atomic.cannot_write(path, error) from error
    return lock


def holder(path: Path) -> Holder | None:
    """Return who says to hold this lock, or None."""
    try:
        value: dict[str, Json] = json.loads(path.with_suffix(".json").read_text())
        return Holder(int(str(value["pid"])), str(value["since"]), str(value["note"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def held(path: Path, *, wait_s: float = 30.0, blocked: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a lock for a moment. `blocked` is told once when somebody else has it.

    Raises Refused when it is still held after `wait_s` seconds.
    """
    lock = _open(path, 0.2 if blocked else wait_s)
    if lock is None and blocked:
        blocked()
        lock = _open(path, wait_s)
    if lock is None:
        raise refused(path)
    try:
        yield
    finally:
        lock.release()  # type: ignore[attr-defined]


class Ownership:
    """A lock held for the life of this process. Free at once when the process dies, however it dies."""

    def __init__(self, path: Path, lock: object) -> None:
        self._path = path
        self._lock = lock

    def release(self) -> None:
        """Give it up."""
        with contextlib.suppress(OSError):
            self._path.with_suffix(".json").unlink(missing_ok=True)
        self._lock.release()  # type: ignore[attr-defined]


def own(path: Path, note: str) -> Ownership:
    """Take a lock for the life of this process. Raises Refused naming the holder."""
    lock = _open(path, 0)
    if lock is None:
        raise refused(path)
    me = {"pid": proc.identity().pid, "since": rfc3339(SYSTEM.now()), "note": note}
    atomic.write_json(path.with_suffix(".json"), me)
    return Ownership(path, lock)


def refused(path: Path) -> Refused:
    """Say that a lock is held, by whom and since when."""
    who = holder(path)
    if who is None:
        return Refused(f"{path.name} is held by another process", code="lock-held")
    return Refused(
        f"held by process {who.pid} since {who.since} ({who.note})",
        code="lock-held",
        details={"pid": who.pid, "since": who.since, "note": who.note},
    )
