"""Compression in blocks and threads, with bytes that do not depend on how many threads there are.

The caller cuts its stream into blocks of one size. Each is deflated on its own at level 1, with the 32 KiB before it as
dictionary, and ends on a whole byte, so that the results can simply be put one after the other. A block of
which a sample does not shrink is stored, which saves the time that random data would cost in vain.
"""

from __future__ import annotations

import os
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_WINDOW = 1 << 15
_LEVEL = 1  # six times as fast as level 6 and some 14 % larger, and the network is rarely slower than that
_SAMPLE, _SAMPLES = 4096, 4
_WORTH = 15 / 16  # a smaller gain is not worth the time
_STORED = 0xFFFF
# No name, no time, "fastest", and an unknown system: nothing of this machine.
_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\x04\xff"
_LAST = b"\x03\0"  # an empty block that says it is the last
_AT_MOST = 8  # beyond that the reader is what limits


def squeeze(block: bytes, window: bytes) -> bytes:
    """Deflate one block, given the bytes before it, to whole bytes."""
    if not _shrinks(block):
        return _store(block)
    if window:
        deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, window)
    else:
        deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY)
    return deflater.compress(block) + deflater.flush(zlib.Z_SYNC_FLUSH)


def _shrinks(block: bytes) -> bool:
    if len(block) <= _SAMPLE * _SAMPLES:
        return True
    step = (len(block) - _SAMPLE) // (_SAMPLES - 1)
    sample = b"".join(block[at : at + _SAMPLE] for at in range(0, step * _SAMPLES, step))
    return len(zlib.compress(sample, _LEVEL)) < len(sample) * _WORTH


def _store(block: bytes) -> bytes:
    parts = []
    for at in range(0, len(block), _STORED):
        part = block[at : at + _STORED]
        size = len(part)
        parts += [b"\0", size.to_bytes(2, "little"), (size ^ _STORED).to_bytes(2, "little"), part]
    return b"".join(parts)


def processors() -> int:
    """How many threads are worth having here."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, _AT_MOST)


class Gzip:
    """A gzip stream: blocks in, compressed bytes to `sink` in order. To be used with `with`."""

    def __init__(self, sink: Callable[[bytes], object], *, threads: int) -> None:
        self._sink = sink
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="deflate")
        self._waiting: deque[Future[bytes]] = deque()
        self._ahead = 2 * threads  # enough to keep all busy; each holds a block in memory
        self._window = b""
        self._crc = 0
        self._size = 0
        sink(_HEADER)

    def __enter__(self) -> Gzip:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def write(self, block: bytes) -> None:
        """Take the next block; the bytes of the stream depend on where blocks end."""
        self._waiting.append(self._pool.submit(squeeze, block, self._window))
        self._window = block[-_WINDOW:]
        self._crc = zlib.crc32(block, self._crc)
        self._size += len(block)
        while len(self._waiting) > self._ahead:
            self._sink(self._waiting.popleft().result())

    def finish(self) -> None:
        """Write what is still in work, and the end of the stream."""
        while self._waiting:
            self._sink(self._waiting.popleft().result())
        ending = self._crc.to_bytes(4, "little") + (self._size & 0xFFFF_FFFF).to_bytes(4, "little")
        self._sink(_LAST + ending)
