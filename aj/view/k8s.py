"""Clusters as rows: where one is, gangs, queues, pods, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import text, units
from aj.view import schema
from aj.view.document import Column, Document, Form, listing, result, single
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema
    from aj.wire.kube import ClusterStatus, EventList, GangList, JobRemoved, PodList, QueueRow, QueueRows, Refreshed

STATUS = (
    Column("context", form=Form.ID),
    Column("server", form=Form.ID),
    Column("namespace", form=Form.ID),
    Column("from", "namespace_from"),
    Column("user"),
    Column("version"),
    Column("volcano", "has_volcano"),
    Column("problem"),
)
JOBS = (
    Column("job", "name", Form.ID),
    Column("id", "aj_id", Form.ID),
    Column("phase", form=Form.STATE),
    Column("queue"),
    Column("min", "min_available", Form.NUMBER),
    Column("pending", form=Form.NUMBER),
    Column("running", form=Form.NUMBER),
    Column("succeeded", form=Form.NUMBER),
    Column("failed", form=Form.NUMBER),
    Column("age", "created_at", Form.AGE),
    Column("reason", flexible=True),
)
QUEUES = (
    Column("queue", "name", Form.ID),
    Column("state", form=Form.STATE),
    Column("weight", form=Form.NUMBER),
    Column("pending", form=Form.NUMBER),
    Column("running", form=Form.NUMBER),
    Column("used/limit", "used_text", flexible=True),
)
PODS = (
    Column("pod", "name", Form.ID),
    Column("task"),
    Column("index", form=Form.NUMBER),
    Column("rank", form=Form.NUMBER),
    Column("phase", form=Form.STATE),
    Column("node", form=Form.ID),
    Column("restarts", form=Form.NUMBER),
    Column("age", "created_at", Form.AGE),
    Column("reason", flexible=True),
)
EVENTS = (
    Column("last", "last_at", Form.AGE),
    Column("count", form=Form.NUMBER),
    Column("type"),
    Column("reason"),
    Column("object", form=Form.ID),
    Column("message", flexible=True),
)


def status(found: ClusterStatus) -> Document:
    """Make the document of where one is; rights that are missing are named below it."""
    missing = [f"missing right: {one.verb} {one.resource}" for one in found.rights if not one.allowed]
    columns = [column for column in STATUS if column.of(_item(found)) is not None]
    return single("k8s.status", _item(found), columns, after=missing)


def jobs(found: GangList) -> Document:
    """Make the list of jobs."""
    return listing(
        "k8s.jobs",
        _items(found.rows),
        JOBS,
        noun=f"jobs in {found.namespace}",
        ids="name",
        extra={**_at(found), "by_hand": found.by_hand},
    )


def queues(found: QueueRows) -> Document:
    """Make the list of queues, each resource with what is used and its limit."""
    rows = [{**_item(row), "used_text": _used(row)} for row in found.rows]
    return listing("k8s.queues", rows, QUEUES, noun="queues", ids="name")


def pods(found: PodList) -> Document:
    """Make the list of pods."""
    return listing(
        "k8s.pods", _items(found.rows), PODS, noun=f"pods in {found.namespace}", ids="name", extra=_at(found)
    )


def events(found: EventList) -> Document:
    """Make the list of events."""
    return listing("k8s.events", _items(found.rows), EVENTS, noun="events", extra=_at(found))


def log(pod: str, data: bytes) -> Document:
    """Make the document of what a pod printed, a line each."""
    lines = [line(pod, one) for one in data.splitlines()]
    return Document("k8s.logs", {"pod": pod, "items": tuple(lines)}, rows=lines)


def line(pod: str, data: bytes) -> Item:
    """Return one line of a pod's log."""
    return {"type": "log", "pod": pod, "text": text.decoded(data)}


def removed(word: str, found: JobRemoved) -> Document:
    """Make the document of a job that was deleted."""
    item: Item = {"id": word, "job": found.job, "namespace": found.namespace, "secret": found.secret}
    words = f"deleted {found.job}" if found.job else f"{word} was gone"
    words += f" and Secret {found.secret}" if found.secret else ""
    return result("delete", [item], status="ok" if found.job else "noop", text=words, ids="id")


def refreshed(found: Refreshed) -> Document:
    """Make the document of signatures that were renewed, each with its old and its new end."""
    items = [{"job": found.job, "secret": found.secret, **_item(one)} for one in found.signatures]
    lines = [f"{one.key}: until {one.new_end or '?'} (was {one.old_end or '?'})" for one in found.signatures]
    words = "\n".join([f"renewed Secret {found.secret} of {found.job}", *lines])
    return result("refresh-sas", items, text=words, ids="key")


def login(context: str, file: str, changed: Sequence[str], *, is_dry: bool) -> Document:
    """Make the document of a cluster that came into a kubeconfig."""
    item: Item = {"context": context, "file": file, "changed": tuple(changed)}
    verb = "would change in" if is_dry else "changed in"
    words = f"{verb} {file}: {', '.join(changed)}" if changed else f"{file} has context {context} already"
    return result("login", [item], status="noop" if is_dry or not changed else "ok", text=words, ids="context")


def _used(row: QueueRow) -> str:
    names = sorted({*row.allocated, *row.capability})
    parts = (f"{name} {_amount(name, row.allocated.get(name, '0'))}/{_limit(name, row)}" for name in names)
    return ", ".join(parts)


def _limit(name: str, row: QueueRow) -> str:
    return _amount(name, row.capability[name]) if name in row.capability else "no limit"


def _amount(name: str, word: str) -> str:
    is_size = name == "memory" or name.endswith(("storage", ".memory"))
    return units.size(int(float(word))) if is_size else word


def _at(found: GangList | PodList | EventList) -> Item:
    return {"namespace": found.namespace}


def _items(rows: Sequence[object]) -> list[Item]:
    return [_item(row) for row in rows]


def _item(row: object) -> Item:
    return codec.fields(row)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.wire.kube import ClusterStatus, EventRow, GangRow, PodRow, QueueRow

    fields = schema.fields(QueueRow)
    maybe_text, where = schema.maybe(schema.TEXT), {"namespace": schema.TEXT}
    removed_row = schema.record(id=schema.TEXT, job=maybe_text, namespace=schema.TEXT, secret=maybe_text)
    return {
        "k8s.status": schema.single(schema.of(ClusterStatus)),
        "k8s.jobs": schema.listing(schema.of(GangRow), **where, by_hand=schema.TEXT),
        "k8s.queues": schema.listing(schema.record(**fields, used_text=schema.TEXT)),
        "k8s.pods": schema.listing(schema.of(PodRow), **where),
        "k8s.events": schema.listing(schema.of(EventRow), **where),
        "k8s.logs": schema.record(
            pod=schema.TEXT,
            items=schema.many(schema.record(type=schema.TEXT, pod=schema.TEXT, text=schema.TEXT)),
        ),
        "result/login": schema.result(schema.record(context=schema.TEXT, file=schema.TEXT, changed=schema.NAMES)),
        "result/k8s": schema.result(removed_row),
        "result/refresh-sas": schema.result(
            schema.record(job=schema.TEXT, secret=schema.TEXT, key=schema.TEXT, old_end=maybe_text, new_end=maybe_text)
        ),
    }
