"""Lines of a job's log as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import clock, text
from aj.view import schema
from aj.view.document import Document

if TYPE_CHECKING:
    from aj.model.log import Chunk
    from aj.view.document import Item
    from aj.view.schema import Schema


def line(chunk: Chunk, data: bytes) -> Item:
    """Return one line with when it was seen and who wrote it."""
    return {
        "ts": clock.rfc3339(chunk.at),
        "source": chunk.stream.source.value,
        "attempt": chunk.stream.attempt,
        "rank": chunk.stream.rank if chunk.stream.rank >= 0 else None,
        "stream": chunk.stream.name,
        "text": text.decoded(data),
    }


def lines(job_id: str, found: Sequence[Item]) -> Document:
    """Make the document of a log."""
    body: Item = {"id": job_id, "lines": tuple(found)}
    return Document("logs", body, rows=found)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    one = schema.record(
        ts=schema.TEXT,
        source=schema.TEXT,
        attempt=schema.WHOLE,
        rank=schema.maybe(schema.WHOLE),
        stream=schema.one_of("out", "err"),
        text=schema.TEXT,
    )
    return {"logs": schema.record(id=schema.TEXT, lines=schema.many(one))}
