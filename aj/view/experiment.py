"""Experiments of a workspace as rows, and one of them with its newest jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.base import text
from aj.view import cloudjob, schema
from aj.view.document import Column, Document, Form, listing
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.schema import Schema
    from aj.wire.azure import CloudJobList, CloudStats

COLUMNS = (
    Column("experiment", "name", Form.ID),
    Column("jobs", "total", Form.NUMBER),
    Column("active", form=Form.NUMBER),
    Column("queued", form=Form.NUMBER),
    Column("completed", form=Form.NUMBER),
    Column("failed", form=Form.NUMBER),
    Column("success", "success_rate", Form.NUMBER),
    Column("gpu hours", "gpu_hours", Form.NUMBER),
    Column("median wait", "median_queued_s", Form.SECONDS),
)


def experiments(found: CloudStats) -> Document:
    """Make the list of experiments, the one with the most jobs first."""
    items = []
    for part in found.tally.groups.get("experiment", ()):
        total = codec.fields(part.total)
        items.append({"name": part.name, **total})
    return listing(
        "exp.list",
        items,
        COLUMNS,
        noun="experiments",
        ids="name",
        truncated=found.truncated,
        extra={"workspace": found.workspace, "read": found.read},
        footer=[f"over {text.plural(found.read, 'job')}"],
    )


def experiment(name: str, found: CloudJobList) -> Document:
    """Make the document of one experiment: its newest jobs."""
    jobs = cloudjob.jobs(found)
    body = {"name": name, "workspace": found.workspace, "truncated": found.truncated, "jobs": jobs.body["items"]}
    return Document("exp", {"item": body}, rows=jobs.rows, columns=jobs.columns, ids=jobs.ids, footer=jobs.footer)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.model.tally import Total

    fields = schema.fields(Total)
    maybe_text = schema.maybe(schema.TEXT)
    whole = schema.record(
        name=schema.TEXT,
        workspace=maybe_text,
        truncated=schema.YES_NO,
        jobs=schema.many(cloudjob.job_schema()),
    )
    return {
        "exp.list": schema.listing(schema.record(name=schema.TEXT, **fields), workspace=maybe_text, read=schema.WHOLE),
        "exp": schema.single(whole),
    }
