"""A submission: what was sent, queued or only rendered, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import text, units
from aj.model.ticket import Mode, Outcome, TicketState
from aj.view import schema
from aj.view.document import Column, Document, Form, single

if TYPE_CHECKING:
    from aj.model.code import CodeRef
    from aj.model.job import JobSpec, Task
    from aj.model.json import Json
    from aj.model.ticket import Ticket
    from aj.view.document import Item
    from aj.view.schema import Schema

FIELDS = (
    Column("status", form=Form.STATE),
    Column("id", form=Form.ID),
    Column("name", form=Form.ID),
    Column("azure_name", form=Form.ID),
    Column("backend"),
    Column("shape", "shape_text"),
    Column("sku"),
    Column("code", "code_text"),
    Column("portal", "portal_url"),
    Column("note"),
)


def item(
    spec: JobSpec, ticket: Ticket | None, *, status: str | None = None, ended: Item | None = None
) -> dict[str, Json]:
    """Return a submission as JSON values; without a ticket nothing was sent.

    `ended` is the record of its job, where somebody waited for its end.
    """
    result = ticket.result if ticket else None
    return {
        "status": status or (_status(ticket) if ticket else "dry_run"),
        "id": spec.id,
        "ticket": ticket.ticket if ticket else None,
        "name": spec.name,
        "azure_name": result.azure_name if result else None,
        "backend": spec.service,
        "portal_url": result.portal_url if result else None,
        "note": result.note if result else None,
        "template": spec.template,
        "experiment": spec.experiment,
        "target": _target(spec),
        "sku": spec.sku,
        "matched_instances": result.matched_instances if result else (),
        "shape": _shape(spec),
        "shape_text": _shape_text(spec),
        "tasks": tuple(_task(task) for task in spec.tasks),
        "image": spec.image,
        "env_names": tuple(sorted(spec.env)),
        "command": spec.argv,
        "code": code_item(ticket.code, ticket) if ticket and ticket.code else None,
        "code_text": code_text(ticket.code, ticket) if ticket and ticket.code else None,
        "path": None,
        "document": None,
        "next": (),
        "job": ended,
    }


def _status(ticket: Ticket) -> str:
    if ticket.state is TicketState.COMPLETED:
        return "submitted"
    if ticket.state.is_final:
        return "unknown" if ticket.outcome is Outcome.UNKNOWN else "failed"
    return "queued"


def _target(spec: JobSpec) -> Item:
    target = spec.config.get("target")
    given = target if isinstance(target, Mapping) else {}
    return {
        "service": spec.service,
        "compute": given.get("name"),
        "workspace": given.get("workspace_name"),
        "context": given.get("context"),
        "namespace": given.get("namespace"),
        "queue": given.get("queue"),
    }


def _shape(spec: JobSpec) -> Item:
    nodes = sum(task.replicas for task in spec.tasks) or spec.shape.nodes
    if spec.tasks:
        gpus = sum(task.replicas * task.gpus_per_node for task in spec.tasks)
        processes = sum(task.replicas * task.processes_per_node for task in spec.tasks)
        return _shape_item(nodes, None, None, None, gpus, processes)
    shape = spec.shape
    return _shape_item(
        nodes,
        shape.sku_processes,
        shape.processes_per_node,
        shape.gpus_per_node,
        shape.total_gpus,
        shape.world_size,
    )


def _shape_item(
    nodes: int, sku: int | None, per_node: int | None, gpus_per_node: int | None, gpus: int, processes: int
) -> Item:
    return {
        "nodes": nodes,
        "sku_processes_per_node": sku,
        "processes_per_node": per_node,
        "gpus_per_node": gpus_per_node,
        "total_gpus": gpus,
        "total_processes": processes,
    }


def _shape_text(spec: JobSpec) -> str:
    shape = _shape(spec)
    words = [text.plural(int(str(shape["nodes"])), "node")]
    words.append(text.plural(int(str(shape["total_processes"])), "process", "processes"))
    if shape["total_gpus"]:
        words.append(text.plural(int(str(shape["total_gpus"])), "GPU"))
    return ", ".join(words)


def _task(task: Task) -> Item:
    return {
        "name": task.name,
        "replicas": task.replicas,
        "gpus_per_node": task.gpus_per_node,
        "processes_per_node": task.processes_per_node,
    }


def code_item(code: CodeRef, ticket: Ticket) -> Item:
    """Return packed code as JSON values; where it is uploaded, it counts as reused when nothing was sent."""
    uploaded = ticket.result.uploaded_bytes if ticket.result else None
    return {
        "digest": code.digest,
        "archive_sha256": code.archive_sha256,
        "files": code.files,
        "bytes": code.bytes,
        "reused": ticket.code_reused if uploaded is None else uploaded == 0,
        "uploaded_bytes": uploaded,
    }


def code_text(code: CodeRef, ticket: Ticket) -> str:
    """Write packed code in a few words, and what was sent of it."""
    what, digest = f"{text.plural(code.files, 'file')}, {units.size(code.bytes)}", code.digest[:12]
    uploaded = ticket.result.uploaded_bytes if ticket.result else None
    if uploaded is None:
        return f"reused {digest}, {what}" if ticket.code_reused else f"{what}, {digest}"
    sent = f"uploaded {units.size(uploaded)}" if uploaded else "reused (0 B sent)"
    return f"{what}, {digest}, {sent}"


def sent(spec: JobSpec, ticket: Ticket, following: Sequence[str], ended: Item | None = None) -> Document:
    """Make the document of a submission that the daemon has taken, with its job once that has ended."""
    found = {**item(spec, ticket, ended=ended), "next": tuple(following)}
    queued = ticket.mode is Mode.QUEUED
    words = f"queued {spec.name} as {ticket.ticket}" if queued else None
    columns = [column for column in FIELDS if column.title != "azure_name" or found["azure_name"] != found["id"]]
    return single("submission", found, columns, text=words, ids="ticket" if queued else "id")


def rendered(found: Item, path: str) -> Document:
    """Make the document of a dry run; its text is the path of the file."""
    return single("submission", found, text=path, ids="path")


def size_text(found: Item) -> str:
    """Write how much a dry run would send, in one line."""
    code = found["code"]
    if not isinstance(code, Mapping):
        return str(found["shape_text"])
    files, size = int(str(code["files"])), int(str(code["bytes"]))
    return f"{found['shape_text']}; code: {text.plural(files, 'file')}, {units.size(size)} (`--show files` lists them)"


def argv(spec: JobSpec, words: Sequence[str], line: str) -> Document:
    """Make the view of the final words of the command: one JSON list."""
    return single("submission.argv", {"id": spec.id, "argv": tuple(words)}, text=line)


def body(spec: JobSpec, found: Mapping[str, Json], line: str) -> Document:
    """Make the view of the body of the request; `line` is that body as it is sent."""
    return single("submission.body", {"id": spec.id, "body": found}, text=line)


def manifest(spec: JobSpec, found: Sequence[Mapping[str, Json]], lines: str) -> Document:
    """Make the view of the objects that a cluster would get; `lines` are these as YAML."""
    return single("submission.manifest", {"id": spec.id, "manifest": list(found)}, text=lines)


def files(spec: JobSpec, found: Sequence[Item], count: int, total: int) -> Document:
    """Make the view of the files that would travel, with their total."""
    columns = (Column("path", form=Form.ID), Column("size", "size_bytes", Form.SIZE), Column("kind"))
    body: Item = {"id": spec.id, "files": count, "bytes": total, "items": tuple(found)}
    after = [f"total: {text.plural(count, 'file')}, {units.size(total)}"]
    return Document("submission.files", body, rows=found, columns=columns, after=after)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.view import job  # a dry run has none

    maybe_text, maybe_whole = schema.maybe(schema.TEXT), schema.maybe(schema.WHOLE)
    texts = ("id", "name", "backend", "template", "shape_text")
    open_texts = ("ticket", "azure_name", "portal_url", "note", "experiment", "sku", "image", "code_text", "path")
    counts = ("nodes", "sku_processes_per_node", "processes_per_node", "gpus_per_node", "total_gpus", "total_processes")
    code = schema.record(
        digest=maybe_text,
        archive_sha256=maybe_text,
        files=schema.WHOLE,
        bytes=schema.WHOLE,
        reused=schema.maybe(schema.YES_NO),
        uploaded_bytes=maybe_whole,
    )
    task = schema.record(
        name=schema.TEXT,
        replicas=schema.WHOLE,
        gpus_per_node=schema.WHOLE,
        processes_per_node=schema.WHOLE,
    )
    target = ("compute", "workspace", "context", "namespace", "queue")
    one = schema.record(
        status=schema.one_of("submitted", "queued", "dry_run", "failed", "unknown"),
        **dict.fromkeys(texts, schema.TEXT),
        **dict.fromkeys(open_texts, maybe_text),
        target=schema.record(service=schema.TEXT, **dict.fromkeys(target, maybe_text)),
        matched_instances=schema.NAMES,
        shape=schema.record(**dict.fromkeys(counts, maybe_whole)),
        tasks=schema.many(task),
        env_names=schema.NAMES,
        command=schema.NAMES,
        code=schema.maybe(code),
        document=schema.maybe(schema.table(schema.ANY)),
        next=schema.NAMES,
        job=schema.maybe(job.job_schema()),
    )
    file = schema.record(path=schema.TEXT, size_bytes=maybe_whole, kind=schema.TEXT, target=maybe_text)
    return {
        "submission": schema.single(one),
        "submission.argv": schema.single(schema.record(id=schema.TEXT, argv=schema.NAMES)),
        "submission.manifest": schema.single(
            schema.record(id=schema.TEXT, manifest=schema.many(schema.table(schema.ANY)))
        ),
        "submission.body": schema.single(schema.record(id=schema.TEXT, body=schema.table(schema.ANY))),
        "submission.files": schema.record(
            id=schema.TEXT, files=schema.WHOLE, bytes=schema.WHOLE, items=schema.many(file)
        ),
    }
