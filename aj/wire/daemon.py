"""The daemon as others speak of it: whether it is there, how it is, what a stop or a start did."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from aj.base.noun import dataclass
from aj.wire.messages import Hello


class Presence(StrEnum):
    """What stands at the socket."""

    RUNNING = "running"
    STOPPED = "stopped"
    LEAVING = "leaving"  # nobody answers any more, and the process has not ended yet
    HUNG = "hung"
    FOREIGN = "foreign"


@dataclass(frozen=True)
class Status:
    """How the daemon is. `drift` names variables with which it was started otherwise than this caller."""

    presence: Presence
    socket: Path
    log: Path
    hello: Hello | None = None
    pid: int | None = None
    why: str = ""
    drift: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stopped:
    """What a stop did: `status` is `ok`, or `noop` when none ran; `swept` when left-over files were removed."""

    status: str
    pid: int | None = None
    swept: bool = False
    killed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Started:
    """A daemon that runs now. `status` is `noop` when it ran before."""

    status: str
    hello: Hello
    warnings: tuple[str, ...] = ()
