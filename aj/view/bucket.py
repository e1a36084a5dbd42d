"""Buckets, what is in them, and what a transfer brought over; and the line that tells of a job's checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base import clock, text, units
from aj.view import schema
from aj.view.document import Column, Form, listing, result
from aj.wire import codec

if TYPE_CHECKING:
    from aj.model.bucket import Checkpoints, Health, Stored
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.bucket import BucketList, TransferAnswer

BUCKETS = (
    Column("bucket", "name", Form.ID),
    Column("kind"),
    Column("credential", form=Form.ID),
    Column("job", form=Form.ID),
    Column("where", "label", flexible=True),
)
OBJECTS = (
    Column("name", form=Form.ID),
    Column("size", "size_bytes", Form.SIZE),
    Column("age", "modified_at", Form.AGE),
)
MOVED = (
    Column("bucket", form=Form.ID),
    Column("status", form=Form.STATE),
    Column("objects", form=Form.NUMBER),
    Column("size", "bytes", Form.SIZE),
    Column("there before", "skipped", Form.NUMBER),
    Column("problem", flexible=True),
)


def buckets(found: BucketList) -> Document:
    """Make the list of buckets."""
    rows = [codec.dump(row) for row in found.buckets]
    return listing("bucket.list", [row for row in rows if isinstance(row, dict)], BUCKETS, noun="buckets", ids="name")


def objects(bucket: str, found: Sequence[Stored], cursor: str | None) -> Document:
    """Make the list of what is in a bucket; with a cursor there is more."""
    items: list[Item] = [
        {
            "name": one.name,
            "size_bytes": one.size_bytes,
            "modified_at": clock.rfc3339(one.modified_at),
            "etag": one.etag,
        }
        for one in found
    ]
    footer = ["there is more: `--all` shows all, `--cursor` goes on behind these"] if cursor else []
    made = listing(
        "bucket.objects",
        items,
        OBJECTS,
        noun=f"objects in {bucket}",
        ids="name",
        truncated=cursor is not None,
        footer=footer,
    )
    return replace(made, body={**made.body, "next_cursor": cursor})


def progress(answer: TransferAnswer) -> str:
    """Write how far a transfer is as one line."""
    if not answer.total_objects:
        return f"{answer.direction}: looking what is there"
    share = 100 * answer.bytes // answer.total_bytes if answer.total_bytes else 100
    left = f"{answer.objects} of {text.plural(answer.total_objects, 'object')}"
    return f"{answer.direction}: {left}, {amount(answer.bytes)} of {amount(answer.total_bytes)} ({share} %)"


def moved(answer: TransferAnswer) -> Document:
    """Make the document of a transfer that is over."""
    is_done = answer.state.value == "done"
    item: Item = {
        "bucket": answer.label,
        "path": answer.path,
        "status": "failed" if not is_done else "ok" if answer.objects > answer.skipped else "noop",
        "objects": answer.objects,
        "bytes": answer.bytes,
        "skipped": answer.skipped,
        "problem": answer.problem,
    }
    return result(answer.direction.value, [item], MOVED, status=str(item["status"]), ids="bucket")


def amount(count: int) -> str:
    """Write bytes as storage services count them: `101.0 MB`."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def checkpoint_text(found: Checkpoints | None, now: float) -> str | None:
    """Write what of a job's checkpoints has reached their bucket, as one line; None without any."""
    if found is None:
        return None
    return _health_text(found.health, now)


def _health_text(health: Health, now: float) -> str:
    if health.last_modified_at is None:
        words = "nothing in the bucket yet"
    else:
        newest = units.duration(now - health.last_modified_at)
        words = f"{text.plural(health.objects, 'object')}, {amount(health.bytes)} in the bucket, newest {newest} ago"
    return f"{words}; {health.problem}" if health.problem else words


def checkpoint_where(found: Checkpoints | None) -> str | None:
    """Write where the checkpoints of a job are, where it finds them, and whether they outlive it."""
    if found is None:
        return None
    fate = "stays" if found.is_kept else "goes with the job"
    whose = ", was there before the job" if found.is_foreign else ""
    return f"{found.bucket} ({found.kind} of `{found.credential}`, at {found.mount}): {fate}{whose}"


def checkpoint_item(found: Checkpoints | None) -> Item | None:
    """Return the checkpoints of a job as JSON values."""
    if found is None:
        return None
    health = found.health
    at = None if health.last_modified_at is None else clock.rfc3339(health.last_modified_at)
    tried = None if health.tried_at is None else clock.rfc3339(health.tried_at)
    return {
        "bucket": found.bucket,
        "kind": found.kind.value,
        "credential": found.credential,
        "mount": found.mount,
        "retained": found.is_kept,
        "foreign": found.is_foreign,
        "health": {
            "objects": health.objects,
            "bytes": health.bytes,
            "lastModifiedAt": at,
            "truncated": False,
            "kept": health.kept,
            "triedAt": tried,
            "problem": health.problem,
        },
    }


def checkpoint_schema() -> Schema:
    """Return the schema of the checkpoints of a job."""
    from aj.model.bucket import Kind

    maybe_text = schema.maybe(schema.TEXT)
    health = schema.record(
        objects=schema.WHOLE,
        bytes=schema.WHOLE,
        lastModifiedAt=maybe_text,
        truncated=schema.YES_NO,
        kept=schema.WHOLE,
        triedAt=maybe_text,
        problem=maybe_text,
    )
    return schema.record(
        bucket=schema.TEXT,
        kind=schema.of(Kind),
        credential=schema.TEXT,
        mount=schema.TEXT,
        retained=schema.YES_NO,
        foreign=schema.YES_NO,
        health=health,
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.wire.bucket import BucketRow

    maybe_text = schema.maybe(schema.TEXT)
    stored = schema.record(name=schema.TEXT, size_bytes=schema.WHOLE, modified_at=schema.TEXT, etag=schema.TEXT)
    went = schema.result(
        schema.record(
            bucket=schema.TEXT,
            path=schema.TEXT,
            status=schema.one_of("ok", "noop", "failed"),
            objects=schema.WHOLE,
            bytes=schema.WHOLE,
            skipped=schema.WHOLE,
            problem=maybe_text,
        )
    )
    return {
        "bucket.list": schema.listing(schema.of(BucketRow)),
        "bucket.objects": schema.listing(stored),
        "result/upload": went,
        "result/download": went,
    }
