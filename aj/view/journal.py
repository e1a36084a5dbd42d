"""The journal as rows: one submission a row, with the state of its job where this machine knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.model.code import CodeRef
from aj.model.job import Shape
from aj.model.record import RecordState
from aj.model.state import JobState
from aj.model.ticket import Fault
from aj.view import schema
from aj.view import scope as scopes
from aj.view.document import Column, Form, listing
from aj.wire import codec

if TYPE_CHECKING:
    from aj.model.record import Record
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.view.scope import Scope

COLUMNS = (
    Column("id", form=Form.ID),
    Column("state", "shown_state", Form.STATE),
    Column("template", form=Form.ID),
    Column("shape", "shape_text"),
    Column("age", "ts", Form.AGE),
    Column("command", flexible=True),
)


def shape_text(shape: Shape | None) -> str | None:
    """Write a shape in one word: `2x8` are two nodes of SKU size eight, or with eight processes where no SKU counts."""
    if shape is None:
        return None
    return f"{shape.nodes}x{shape.sku_processes or shape.processes_per_node}"


def item(record: Record, job_state: str | None, *, deleted: bool = False) -> Item:
    """Return a record as JSON values. `state` is the submission's, `job_state` the job's on this machine or null.

    `deleted` says that the job was one of this machine and is there no more.
    """
    return {
        "ts": record.ts,
        "id": record.id,
        "ticket": record.ticket,
        "mode": record.mode,
        "state": record.state.value,
        "job_state": job_state,
        "shown_state": job_state or ("deleted" if deleted else record.state.value),
        "outcome": record.outcome,
        "project": record.project,
        "template": record.template,
        "service": record.service,
        "name": record.name,
        "azure_name": record.azure_name,
        "portal_url": record.portal_url,
        "experiment": record.experiment,
        "target": codec.dump(record.target),
        "sku": record.sku,
        "shape": codec.dump(record.shape),
        "shape_text": shape_text(record.shape),
        "image": record.image,
        "command": record.command,
        "env_names": record.env_names,
        "code": codec.dump(record.code),
        "git": codec.dump(record.git),
        "error": codec.dump(record.error),
        "note": record.note,
        "agent": record.agent,
        "session": record.session,
        "session_title": record.session_title,
        "version": record.version,
    }


def records(found: Sequence[Item], *, truncated: bool, scope: Scope, empty: str | None = None) -> Document:
    """Make the list of submissions from their items, newest first; `empty` is said when there are none."""
    footer = ["there are more: `-n 0` shows all"] if truncated else []
    made = listing(
        "journal.list",
        found,
        COLUMNS,
        noun="submissions",
        ids="id",
        truncated=truncated,
        extra={"scope": scope.item},
        footer=footer,
    )
    return scopes.with_sessions(replace(made, empty=empty or made.empty), scope, "session_title")


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    record = schema.record(
        **{
            **{name: schema.maybe(schema.TEXT) for name in ("outcome", "project", "azure_name", "portal_url")},
            **dict.fromkeys(("ts", "id", "ticket", "mode", "template", "service", "name", "command"), schema.TEXT),
            **{name: schema.maybe(schema.TEXT) for name in ("experiment", "sku", "image", "note")},
            **{name: schema.maybe(schema.TEXT) for name in ("agent", "session", "session_title")},
            "state": schema.of(RecordState),
            "job_state": schema.maybe(schema.of(JobState)),
            "shown_state": schema.TEXT,
            "target": schema.table(schema.ANY),
            "shape": schema.of(Shape | None),
            "shape_text": schema.maybe(schema.TEXT),
            "env_names": schema.NAMES,
            "code": schema.of(CodeRef | None),
            "git": schema.maybe(schema.table(schema.ANY)),
            "error": schema.of(Fault | None),
            "version": schema.TEXT,
        }
    )
    return {"journal.list": schema.listing(record, scope=scopes.item_schema())}
