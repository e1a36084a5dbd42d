"""Lines of a job's log as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base import clock, text
from aj.view import schema
from aj.view.document import Document

if TYPE_CHECKING:
    from aj.model.log import Chunk, Stream
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


def whole_lines(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks that end with a line each; what lacks its end waits for the rest, or for the end of all."""
    rests: dict[Stream, Chunk] = {}
    for chunk in chunks:
        before = rests.pop(chunk.stream, None)
        data = before.data + chunk.data if before else chunk.data
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            rests[chunk.stream] = replace(chunk, data=data[whole:])
        if whole:
            yield replace(chunk, data=data[:whole])
    for rest in rests.values():
        yield replace(rest, data=rest.data + b"\n")


def labelled(chunk: Chunk, data: bytes) -> bytes:
    """Put who wrote it before each line of these: `[rank 2] `, `[runner] `."""
    rank = chunk.stream.rank
    label = f"[rank {rank}] ".encode() if rank >= 0 else b"[runner] "
    return b"".join(label + line for line in data.splitlines(keepends=True))


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
