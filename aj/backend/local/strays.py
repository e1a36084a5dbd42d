"""Every process of a job, wherever it hid: below the supervisor, in its groups, or marked by its environment.

A job may itself use `aj`: a daemon or a supervisor that it started is never counted, nor what runs below.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Sequence

from aj.backend.local import limits
from aj.base import proc
from aj.base.clock import Clock

OURS = ("__daemon", "__supervise")
LOOK_S = 0.02  # between two looks at processes that were told to end


def of(groups: Sequence[str], *, below: int | None = None, workdirs: Sequence[str] = ()) -> set[int]:
    """Return the processes in the groups, below a process, and those that were started in `workdirs`."""
    found = limits.members(groups)
    if below is not None:
        found |= proc.children_of({below})
    for workdir in workdirs:
        found.update(proc.with_environment("AJ_WORKDIR", workdir))
    found.discard(os.getpid())
    ours = {pid for pid in found if proc.is_program(pid, *OURS)}
    if not ours:
        return found
    theirs = ours | proc.children_of(ours)
    for pid in theirs:
        limits.release(groups, pid)
    return found - theirs


def send(pids: Iterable[int], number: int) -> None:
    """Signal processes; one that has ended meanwhile, or changed its user, is passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end(groups: Sequence[str], workdirs: Sequence[str], clock: Clock, *, grace_s: float, give_up_s: float) -> set[int]:
    """End what is left of a job without a supervisor: TERM, then KILL. Return what did not end in time."""
    begun = clock.monotonic()
    number: int = signal.SIGTERM
    told: set[int] = set()
    while left := of(groups, workdirs=workdirs):
        now = clock.monotonic()
        if now - begun > give_up_s:
            return left
        if now - begun >= grace_s:
            number, told = signal.SIGKILL, set()
        send(left - told, number)
        told |= left
        clock.sleep(LOOK_S)
    return set()
