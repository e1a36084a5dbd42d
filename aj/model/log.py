"""Log bytes as they travel: a chunk of one stream of one process, and a cursor to go on from."""

from __future__ import annotations

from enum import StrEnum

from aj.base.noun import dataclass


class Source(StrEnum):
    """Who wrote it: the user's program, our runner (setup lines, notes), or the platform."""

    USER = "user"
    RUNNER = "runner"
    PLATFORM = "platform"


@dataclass(frozen=True)
class Stream:
    """One file of output: an attempt, a rank (-1 for the runner's own), `out` or `err`."""

    attempt: int
    rank: int
    name: str
    source: Source = Source.USER


@dataclass(frozen=True)
class Chunk:
    """Some bytes of one stream, from `offset`; `at` is when they were seen (seconds since the epoch)."""

    stream: Stream
    offset: int
    data: bytes
    at: float
