"""Starting the program that supervises one start, and waiting until it has taken the start up."""

from __future__ import annotations

import os
from pathlib import Path

from aj.backend.protocol import SetupFailed
from aj.base import paths, proc
from aj.base.settings import Settings
from aj.store import atomic

READY_LOOK_S = 1.0  # how often a slow start of the supervisor is looked at; it has no time limit while it lives


def supervisor(place: Path, settings: Settings) -> None:
    """Start a supervisor for the request in a folder; return once it has claimed it, or is gone. Raises SetupFailed."""
    look, ready = os.pipe()
    log = os.open(place / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, atomic.FILE_MODE)
    try:
        argv = [*paths.program(), "__supervise", str(place), str(ready)]
        child = proc.spawn(argv, stdout=log, stderr=log, env=environment(settings), pass_fds=(ready,))
    except OSError as error:
        os.close(look)
        raise SetupFailed(f"the supervisor could not be started: {error}") from error
    finally:
        os.close(ready)
        os.close(log)
    proc.let_go(child)
    while not proc.readable(look, READY_LOOK_S):
        proc.reap(child.pid)
        if proc.start_time(child.pid) is None:
            break
    os.close(look)


def environment(settings: Settings) -> dict[str, str]:
    """Return what the supervisor itself gets: nothing of the job's, and UTF-8 whatever the locale."""
    kept = {name: settings.get(name) for name in ("PATH", "HOME", "AJ_STATE_DIR")}
    return {"LC_ALL": "C.UTF-8", **{name: value for name, value in kept.items() if value}}
