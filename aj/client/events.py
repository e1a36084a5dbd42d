"""Events: everything that changes at the daemon, as it changes, without a gap that is not told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aj.base.clock import SYSTEM
from aj.base.errors import AjError, DaemonError
from aj.client.line import Line, Query, lines_of
from aj.net.uds import Lost, Silent
from aj.wire import codec, paths
from aj.wire.messages import Notice

if TYPE_CHECKING:
    from aj.net.uds import Stream

PAUSE_S = 0.5  # between a lost stream and the next try
MISSES = 5  # streams in a row that ended without a word: something is wrong


class Events:
    """Listens to the daemon."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def listen(self, *, project_key: str | None = None, timeout_s: float | None = None) -> Iterator[Notice]:
        """Yield events of one project or of all as they happen, until the time is over.

        A lost connection is taken up again where it ended; what was missed is counted in `dropped`.
        Raises DaemonError.
        """
        limit = None if timeout_s is None else SYSTEM.monotonic() + timeout_s
        last, misses = "", 0
        while limit is None or SYSTEM.monotonic() < limit:
            query: Query = {"project": project_key, "timeout_s": _left(limit)}
            try:
                stream = self._line.stream(paths.EVENTS, query=query, headers={paths.LAST_EVENT: last} if last else {})
                try:
                    for event_id, notice in _events(stream, limit):
                        last, misses = event_id, 0
                        yield notice
                finally:
                    stream.close()
            except Silent as error:
                raise DaemonError(
                    f"the daemon went silent: {error}", code="hung", hint="`aj daemon restart`"
                ) from error
            except Lost:
                self._line.forget()
            if limit is not None and SYSTEM.monotonic() >= limit:
                return
            misses += 1
            if misses >= MISSES:
                raise DaemonError("the daemon ends every stream", code="unsteady", hint="`aj daemon logs`")
            SYSTEM.sleep(PAUSE_S)


def _left(limit: float | None) -> float | None:
    return None if limit is None else round(max(0.0, limit - SYSTEM.monotonic()), 3)


def _events(stream: Stream, limit: float | None) -> Iterator[tuple[str, Notice]]:
    """Yield id and event of each block of a stream of server-sent events, until the time is over."""
    fields: dict[str, str] = {}
    for line in lines_of(stream):
        if limit is not None and SYSTEM.monotonic() >= limit:
            return
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            yield fields.get("id", ""), _notice(fields["data"])
        fields = {}


def _notice(data: str) -> Notice:
    try:
        return codec.load(Notice, codec.parse(data), lenient=True)
    except AjError as error:
        raise DaemonError(f"an event cannot be read: {error.message}", code="bad-event") from error
