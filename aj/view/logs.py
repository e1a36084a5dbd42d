"""Lines of a job's log as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base import clock, text
from aj.view import schema
from aj.view.document import Column, Document, Form, listing

if TYPE_CHECKING:
    from aj.model.log import Chunk, Stream
    from aj.view.document import Item
    from aj.view.schema import Schema
    from aj.wire.azure import LogFile


def line(chunk: Chunk, data: bytes) -> Item:
    """Return one line with when it was seen and who wrote it."""
    return {
        "ts": clock.rfc3339(chunk.at),
        "source": chunk.stream.source.value,
        "attempt": chunk.stream.attempt,
        "rank": chunk.stream.rank if chunk.stream.rank >= 0 else None,
        "stream": chunk.stream.name,
        "file": None,
        "text": text.decoded(data),
    }


def line_of_file(path: str, data: bytes, rank: int | None) -> Item:
    """Return one line of a log file of a workspace, which tells neither when it was written nor of which start."""
    return {
        "ts": None,
        "source": "platform" if path.startswith("system_logs/") else "user",
        "attempt": None,
        "rank": rank,
        "stream": None,
        "file": path,
        "text": text.decoded(data),
    }


def files(job_id: str, found: Sequence[LogFile]) -> Document:
    """Make the list of the log files of a job, what a user wants first."""
    rows: list[Item] = [{"path": file.path, "size_bytes": file.size_bytes} for file in found]
    columns = (Column("file", "path", Form.ID), Column("size", "size_bytes", Form.SIZE))
    return listing("logs.files", rows, columns, noun="log files yet", ids="path", extra={"scope": job_id})


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


def matching(data: bytes, wanted: str) -> bytes:
    """Keep the lines that hold a text."""
    return b"".join(line for line in data.splitlines(keepends=True) if wanted.encode() in line)


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
        ts=schema.maybe(schema.TEXT),
        source=schema.TEXT,
        attempt=schema.maybe(schema.WHOLE),
        rank=schema.maybe(schema.WHOLE),
        stream=schema.maybe(schema.one_of("out", "err")),
        file=schema.maybe(schema.TEXT),
        text=schema.TEXT,
    )
    file = schema.record(path=schema.TEXT, size_bytes=schema.maybe(schema.WHOLE))
    return {
        "logs": schema.record(id=schema.TEXT, lines=schema.many(one)),
        "logs.files": schema.listing(file, scope=schema.TEXT),
    }
