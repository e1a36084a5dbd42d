"""One replica of a deployment on this machine: the start of a long-running program, and its end.

The same supervisor as for jobs watches over it, so it outlives the daemon, its output goes into files, and
nothing that it left behind survives it. Every step may be called again after the daemon was killed.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from aj.backend.local import attempt, spawn, strays
from aj.backend.protocol import Fate, Observation, SetupFailed
from aj.base import proc
from aj.base.clock import SYSTEM, Clock
from aj.base.errors import AjError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.json import Json
from aj.store import atomic

LOOK_S = 0.5  # how soon a wait notices that the daemon is leaving
STRAY_GRACE_S = 1.0  # between TERM and KILL for what has lost its supervisor
GIVE_UP_S = 30.0  # a process that cannot be killed waits for a device


@dataclass(frozen=True)
class Program:
    """What runs in a replica. `folder` is the replica's own; `env` is the whole environment."""

    argv: Sequence[str]
    env: Mapping[str, str]
    directory: str
    folder: Path
    umask: int | None = None
    grace_s: float = attempt.GRACE_S


class Replicas(Protocol):
    """Where replicas run."""

    def start(self, place: Path, number: int, program: Program) -> None:
        """Start a program once; called again it finds it started. Raises SetupFailed, AjError."""

    def was_started(self, place: Path) -> bool:
        """Whether somebody ever took this start up."""

    def pid(self, place: Path) -> int | None:
        """Return the process that supervises a start, or None."""

    def wait(self, place: Path, work: Path, stop: threading.Event) -> Observation:
        """Wait until a start has ended and nothing of it is left, or `stop` is set."""

    def end(self, place: Path, grace_s: float) -> None:
        """Ask a start to end: TERM at once, KILL after the grace. Returns without waiting."""


class LocalReplicas:
    """Replicas as processes of this machine. Safe between threads."""

    def __init__(self, settings: Settings, clock: Clock = SYSTEM) -> None:
        self._settings = settings
        self._clock = clock

    def start(self, place: Path, number: int, program: Program) -> None:
        """Start a program once; called again it finds it started. Raises SetupFailed, AjError."""
        if self.was_started(place):
            return
        atomic.make_folder(place)
        process: dict[str, Json] = {
            "node": 0,
            "argv": list(program.argv),
            "cwd": program.directory,
            "env": dict(program.env),
        }
        request = attempt.Request(
            job=str(program.folder),
            attempt=number,
            setups=(),
            ranks=(process,),
            umask=program.umask,
            grace_s=program.grace_s,
        )
        attempt.write_request(place, request)
        spawn.supervisor(place, self._settings)
        if not self.was_started(place):
            raise SetupFailed("the supervisor of the replica did not start")

    def was_started(self, place: Path) -> bool:
        """Whether somebody ever took this start up."""
        return attempt.supervisor(place) is not None

    def pid(self, place: Path) -> int | None:
        """Return the process that supervises a start, or None."""
        who = attempt.supervisor(place)
        return who.pid if who is not None and proc.is_alive(who) else None

    def wait(self, place: Path, work: Path, stop: threading.Event) -> Observation:
        """Wait until a start has ended and nothing of it is left, or `stop` is set."""
        who = attempt.supervisor(place)
        while who is not None and not proc.wait_any(who, LOOK_S):
            if stop.is_set():
                return Observation(Fate.RUNNING)
        if who is not None:
            proc.reap(who.pid)
        left = strays.end((), (str(work),), self._clock, grace_s=STRAY_GRACE_S, give_up_s=GIVE_UP_S)
        record = attempt.exit_record(place)
        if left:
            pids = ", ".join(str(pid) for pid in sorted(left)[:5])
            return Observation(Fate.RUNNING, message=f"processes do not end: {pids}")
        if record is None:
            return Observation(Fate.LOST, message="its supervisor was killed")
        return Observation(
            Fate.EXITED, exit_code=record.exit_code, started_at=record.started_at, ended_at=record.ended_at,
            message=record.message,
        )  # fmt: skip

    def end(self, place: Path, grace_s: float) -> None:
        """Ask a start to end: TERM at once, KILL after the grace. Returns without waiting."""
        with contextlib.suppress(AjError):  # on a full disk the supervisor gives its own grace
            attempt.ask_end(place, grace_s)
        who = attempt.supervisor(place)
        if who is not None:
            proc.send(who, signal.SIGTERM)
