"""The only use of `filelock`: a lock as a `with`, with a word for who holds it.

Order of taking, when two are held: project ownership, ticket, journal, job. Never the reverse. A lock
is held for a file write, never across a network call; project ownership alone is held for the life of
a daemon. Beside `KEY.lock` stands `KEY.json` with the holder: for the message of whoever is refused,
and so that a reader can tell a living owner from a dead one without touching the lock.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from aj.base.clock import SYSTEM, rfc3339
from aj.base.errors import AjError, Refused
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from filelock import BaseFileLock

SOCKET = "socket "  # how the note of a daemon that owns a project begins; its socket's path follows
POLL_S = 0.005  # the default of 50 ms would make sixteen writers wait seconds
PATIENCE_S = 0.2  # a wait shorter than this is not worth a word to anyone


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, as it told itself."""

    pid: int
    start_time: str
    boot_id: str
    host: str
    since: str
    note: str

    @property
    def is_alive(self) -> bool:
        """Whether that very process still runs. A process of another machine counts as alive."""
        if self.host != _host():
            return True
        from aj.base import proc  # 5 ms, and most commands meet no holder

        return proc.is_alive(proc.Identity(self.pid, self.start_time, self.boot_id))


def _host() -> str:
    return os.uname().nodename


@functools.cache
def _no_soft_lock() -> dict[str, bool]:
    """Ask newer releases not to fall back to a marker file, which a killed process would leave behind."""
    import inspect

    import filelock

    knows = "fallback_to_soft" in inspect.signature(filelock.FileLock.__init__).parameters
    return {"fallback_to_soft": False} if knows else {}


def _open(path: Path, timeout_s: float) -> BaseFileLock | None:
    import filelock  # 50 ms, only where a lock is taken

    atomic.make_folder(path.parent)
    make: Callable[..., BaseFileLock] = filelock.FileLock
    lock = make(str(path), mode=0o600, thread_local=False, **_no_soft_lock())
    try:
        lock.acquire(timeout=timeout_s, poll_interval=POLL_S)
    except filelock.Timeout:
        return None
    except RuntimeError as error:  # a file system that knows no locks
        raise AjError(
            f"cannot lock {path}: this file system has no locks",
            code="cannot-lock",
            hint="point AJ_STATE_DIR to a local folder",
        ) from error
    except OSError as error:
        raise atomic.cannot_write(path, error) from error
    return lock


def holder(path: Path) -> Holder | None:
    """Return who says to hold this lock, or None."""
    try:
        value: dict[str, Json] = json.loads(path.with_suffix(".json").read_bytes())
        words = [str(value[name]) for name in ("start_time", "boot_id", "host", "since", "note")]
        return Holder(int(str(value["pid"])), *words)
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def living_holder(path: Path) -> Holder | None:
    """Return the living process that owns this, or None. Looks only: takes no lock, writes nothing."""
    who = holder(path)
    return who if who is not None and who.is_alive else None


@contextlib.contextmanager
def held(path: Path, *, wait_s: float = 30.0, blocked: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a lock for a moment. `blocked` is told once when somebody else has it.

    Raises Refused when it is still held after `wait_s` seconds, AjError when it cannot be taken at all.
    """
    lock = _open(path, min(PATIENCE_S, wait_s) if blocked else wait_s)
    if lock is None and blocked:
        blocked()
        lock = _open(path, wait_s)
    if lock is None:
        raise refused(path)
    try:
        yield
    finally:
        lock.release()


class Ownership:
    """A lock held for the life of this process. Free at once when the process dies, however it dies."""

    _all: ClassVar[set[Ownership]] = set()  # a lock that nobody refers to would be given up by its destructor

    def __init__(self, path: Path, lock: BaseFileLock) -> None:
        self._path = path
        self._lock = lock
        self._all.add(self)

    def release(self) -> None:
        """Give it up. A second call does nothing."""
        if not self._lock.is_locked:
            return
        with contextlib.suppress(OSError):  # a stale word about a process that is gone misleads nobody
            self._path.with_suffix(".json").unlink(missing_ok=True)
        self._lock.release()
        self._all.discard(self)


def own(path: Path, note: str) -> Ownership:
    """Take a lock for the life of this process; `note` tells others where it can be reached.

    Raises Refused naming the holder, AjError when the folder cannot be written.
    """
    lock = _open(path, 0)
    if lock is None:
        raise refused(path)
    from aj.base import proc

    me = proc.identity()
    words: dict[str, Json] = {
        "pid": me.pid,
        "start_time": me.start_time,
        "boot_id": me.boot_id,
        "host": _host(),
        "since": rfc3339(SYSTEM.now()),
        "note": note,
    }
    try:
        atomic.write_json(path.with_suffix(".json"), words)
    except AjError:
        lock.release()
        raise
    return Ownership(path, lock)


def refused(path: Path) -> Refused:
    """Say that a lock is held, by whom and since when."""
    who = holder(path)
    if who is None:
        return Refused(f"{path.name} is held by another process", code="lock-held")
    near = Path(who.note.removeprefix(SOCKET)).parent
    is_reached = who.note.startswith(SOCKET) and near.parent != Path("/tmp")  # a short path does not tell the folder
    ends = f"`AJ_RUNTIME_DIR={shlex.quote(str(near))} aj daemon stop`" if is_reached else f"`kill {who.pid}`"
    return Refused(
        f"held by process {who.pid} on {who.host} since {who.since} ({who.note})",
        code="lock-held",
        hint=f"a daemon of another runtime folder has it: {ends} ends it" if who.note.startswith(SOCKET) else None,
        details={"pid": who.pid, "host": who.host, "since": who.since, "note": who.note},
    )
