"""What the daemon and the supervisor of one start tell each other, as files in the attempt's folder.

request.json      what to run; taken away by the supervisor as soon as it is read, for it has values
supervisor.json   who supervises; made once, so that a start happens once whoever asks for it again
started           the processes of the command run
terminate.json    the end was asked for, with the seconds between TERM and KILL
exit.json         how it ended; written when the last process of the command is gone
exec              somebody was told how to run a command inside

A file that cannot be read any more says nothing: what it held is not known, and nobody guesses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from aj.backend.local.mounts import Mounts
from aj.base import proc
from aj.base.errors import Refused, UserError
from aj.base.noun import dataclass
from aj.base.proc import Identity
from aj.model.json import Json
from aj.store import atomic
from aj.wire import codec

GRACE_S = 30.0  # between TERM and KILL, where nobody says otherwise
EXIT_BYTES = 4096  # kept free from the start, so that a full disk cannot swallow the outcome
MESSAGE_LENGTH = 500  # fits with room to spare, whatever has to be escaped


@dataclass(frozen=True)
class Request:
    """One start. Processes are plain mappings with `node`, `cwd`, `argv` and `env`.

    `spared` are names of programs that hear no TERM: they end by themselves when what they look after has ended.
    """

    job: str
    attempt: int
    setups: tuple[Mapping[str, Json], ...]
    ranks: tuple[Mapping[str, Json], ...]
    groups: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    umask: int | None = None
    grace_s: float = GRACE_S
    mounts: Mounts | None = None
    spared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exit:
    """How a start ended. Times are seconds since the epoch."""

    exit_code: int
    in_setup: bool = False
    oom_killed: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    message: str | None = None
    schema_version: int = field(default=1)


@dataclass(frozen=True)
class Wish:
    """That the end was asked for."""

    grace_s: float


T = TypeVar("T")
NOBODY = Identity(0, "", "")  # a process that never was


def read(path: Path, kind: type[T]) -> T:
    """Read a file of a start. Raises FileNotFoundError, ValueError on what it should not hold."""
    try:
        return codec.load(kind, json.loads(path.read_bytes()), lenient=True)
    except (UserError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def write_request(folder: Path, request: Request) -> None:
    """Say what to run. Raises AjError when the disk refuses."""
    atomic.write_json(folder / "request.json", codec.dump(request))


def take_request(folder: Path) -> Request | None:
    """Read what to run, and take the file away; None when it is gone. Raises ValueError."""
    path = folder / "request.json"
    try:
        request = read(path, Request)
        path.unlink()
    except FileNotFoundError:
        return None
    return request


def forget_request(folder: Path) -> None:
    """Take the request away when nobody read it."""
    (folder / "request.json").unlink(missing_ok=True)


def claim(folder: Path) -> bool:
    """Become the supervisor of this start; False when there was one already. Durable."""
    who = proc.identity()
    beside = folder / f".supervisor.{who.pid}"
    atomic.write_json(beside, vars(who))
    try:
        os.link(beside, folder / "supervisor.json")
    except FileExistsError:
        return False
    finally:
        beside.unlink()
    atomic.sync_folder(folder)
    return True


def supervisor(folder: Path) -> Identity | None:
    """Return who supervises, or None when nobody has taken it up.

    Where that cannot be read, it is somebody who is gone: a start is never taken up twice.
    """
    try:
        return read(folder / "supervisor.json", Identity)
    except FileNotFoundError:
        return None
    except ValueError:
        return NOBODY


def mark_started(folder: Path, pids: Sequence[int]) -> None:
    """Note that the processes of the command run."""
    (folder / "started").write_text(" ".join(str(pid) for pid in pids) + "\n")


def is_started(folder: Path) -> bool:
    """Tell whether the processes of the command were started."""
    return (folder / "started").exists()


def started_pid(folder: Path, rank: int) -> int:
    """Return the process of one rank. Raises Refused when it has not been started."""
    try:
        return int((folder / "started").read_text().split()[rank])
    except (FileNotFoundError, ValueError, IndexError):
        raise Refused("the command has not been started yet", code="not-running") from None


def ask_end(folder: Path, grace_s: float) -> None:
    """Ask for the end. Raises AjError when the disk refuses."""
    atomic.write_json(folder / "terminate.json", {"grace_s": grace_s})


def end_asked(folder: Path) -> float | None:
    """Return the grace in seconds when the end was asked for, else None."""
    try:
        return read(folder / "terminate.json", Wish).grace_s
    except FileNotFoundError:
        return None
    except ValueError:
        return GRACE_S


def reserve_exit(folder: Path) -> int:
    """Make room on the disk for the exit record; return its open file."""
    handle = os.open(folder / ".exit", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, atomic.FILE_MODE)
    os.pwrite(handle, b" " * EXIT_BYTES, 0)
    return handle


def write_exit(folder: Path, handle: int, record: Exit) -> None:
    """Write the exit record into its room and let it appear at once."""
    os.pwrite(handle, json.dumps(vars(record)).encode("ascii").ljust(EXIT_BYTES - 1) + b"\n", 0)
    os.fsync(handle)
    os.rename(folder / ".exit", folder / "exit.json")
    atomic.sync_folder(folder)


def exit_record(folder: Path) -> Exit | None:
    """Return how it ended, or None when that is not known."""
    try:
        return read(folder / "exit.json", Exit)
    except (FileNotFoundError, ValueError):
        return None


def mark_exec(folder: Path) -> None:
    """Note that commands may run inside besides those that the supervisor knows."""
    (folder / "exec").touch(mode=atomic.FILE_MODE)


def had_exec(folder: Path) -> bool:
    """Tell whether somebody was told how to run a command inside."""
    return (folder / "exec").exists()
