"""Bytes of an upload as they leave, counted: a transport around the one of the cloud's library.

A body is handed on in small pieces. The library applies its time limit to each of them, so a slow line is
no stalled one, and whoever wants to know is told while a large body is on its way.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

Moved = Callable[[int], None]  # bytes that left, or, below zero, bytes that have to leave again


class Request(Protocol):
    """A request of the library, as far as we look at it."""

    data: object


class Sending(Protocol):
    """What the library asks of a transport."""

    def send(self, request: Request, **options: object) -> object: ...
    def open(self) -> None: ...
    def close(self) -> None: ...


class Gauge:
    """The transport. Safe between threads: each is told of its own call."""

    def __init__(self, inner: Sending) -> None:
        self._inner = inner
        self._call = _Call()

    @contextlib.contextmanager
    def telling(self, moved: Moved | None) -> Iterator[None]:
        """Tell of the bytes that leave within the block; when it fails, that they have to leave again."""
        self._call.moved, self._call.told = moved, 0
        try:
            yield
        except BaseException:
            self._take_back()
            raise
        finally:
            self._call.moved = None

    def send(self, request: Request, **options: object) -> object:
        """Send a request of the library."""
        data = request.data
        if not isinstance(data, bytes) or not data:
            return self._inner.send(request, **options)
        self._take_back()  # of a first time, with a token that was refused
        request.data = _Body(data, self._taken)
        try:
            return self._inner.send(request, **options)
        finally:
            request.data = data

    def _taken(self, count: int) -> None:
        if self._call.moved is not None and count:
            self._call.told += count
            self._call.moved(count)

    def _take_back(self) -> None:
        if self._call.moved is not None and self._call.told:
            count, self._call.told = self._call.told, 0
            self._call.moved(-count)

    def open(self) -> None:
        """Open it."""
        self._inner.open()

    def close(self) -> None:
        """Hang up."""
        self._inner.close()

    def __enter__(self) -> Gauge:
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Body(io.BytesIO):
    """A body that tells of its bytes as they are taken."""

    def __init__(self, data: bytes, taken: Moved) -> None:
        super().__init__(data)
        self._taken = taken

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self._taken(len(piece))
        return piece


class _Call(threading.local):
    """Who wants to know about the call of this thread, and what was told already."""

    moved: Moved | None = None
    told: int = 0
