"""Jobs of workspaces as rows, as a status, and counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.base import text
from aj.view import schema
from aj.view.document import Column, Document, Form, listing
from aj.view.scope import Scope
from aj.wire import codec

if TYPE_CHECKING:
    from aj.model.cloudjob import CloudJob
    from aj.model.json import Json
    from aj.model.tally import Tally, Total
    from aj.view.document import Item
    from aj.view.schema import Schema
    from aj.wire.azure import CloudJobList

UNKNOWN = "unknown"  # the word for a state that its service does not tell
COLUMNS = (
    Column("name", form=Form.ID),
    Column("state", "shown_state", Form.STATE),
    Column("service"),
    Column("experiment"),
    Column("compute"),
    Column("age", "created_at", Form.AGE),
    Column("duration", "duration_s", Form.SECONDS),
    Column("status"),
    Column("display name", "display_name", flexible=True),
)
FIELDS = (
    Column("id", "cloud.aj_id", Form.ID),
    Column("state", "cloud.shown_state", Form.STATE),
    Column("status", "cloud.status"),
    Column("name", "cloud.name", Form.ID),
    Column("display name", "cloud.display_name"),
    Column("service", "cloud.service"),
    Column("workspace", "cloud.workspace", Form.ID),
    Column("experiment", "cloud.experiment"),
    Column("error", "cloud.error"),
    Column("created", "cloud.created_at", Form.TIME),
    Column("waited", "cloud.queued_s", Form.SECONDS),
    Column("started", "cloud.started_at", Form.TIME),
    Column("ended", "cloud.ended_at", Form.TIME),
    Column("duration", "cloud.duration_s", Form.SECONDS),
    Column("compute", "cloud.compute"),
    Column("instance", "cloud.instance"),
    Column("nodes", "cloud.nodes", Form.NUMBER),
    Column("gpus per node", "cloud.gpus", Form.NUMBER),
    Column("tier", "cloud.tier"),
    Column("environment", "cloud.environment"),
    Column("user", "cloud.user"),
    Column("tags", "tags_text"),
    Column("portal", "cloud.portal"),
    Column("template", "ticket.template"),
    Column("agent", "ticket.agent"),
    Column("session", "session_text"),
)
TOTALS = (
    Column("group"),
    Column("name", form=Form.ID),
    Column("total", form=Form.NUMBER),
    Column("active", form=Form.NUMBER),
    Column("queued", form=Form.NUMBER),
    Column("completed", form=Form.NUMBER),
    Column("failed", form=Form.NUMBER),
    Column("canceled", form=Form.NUMBER),
    Column("success rate", "success_rate", Form.NUMBER),
    Column("gpu hours", "gpu_hours", Form.NUMBER),
    Column("median wait", "median_queued_s", Form.SECONDS),
)


def item(job: CloudJob) -> Item:
    """Return a job as JSON values. `shown_state` is our word, or `unknown`."""
    whole = codec.fields(job)
    kind = whole.pop("kind")
    return {**whole, "type": kind, "shown_state": job.state.value if job.state else UNKNOWN}


def jobs(found: CloudJobList) -> Document:
    """Make the list of jobs, newest first."""
    return listing(
        "job.list",
        [item(job) for job in found.jobs],
        COLUMNS,
        noun="jobs",
        ids="name",
        truncated=found.truncated,
        extra={"scope": Scope(workspace=found.workspace).item, "failures": codec.dump(found.failures)},
    )


def tags_text(job: CloudJob) -> str:
    """Write the tags of a job in one line."""
    return ", ".join(f"{name}:{value}" if value else name for name, value in job.tags.items())


def state_line(job_id: str, job: CloudJob, at: str) -> str:
    """Write where a job stands as one line of `wait`: the time of the look, where it stands, why it failed."""
    return f"{job_id}  {at}  {job.words}" + (f"  {job.error}" if job.error else "")


def change_item(job_id: str, job: CloudJob, at: str) -> Item:
    """Return where a job stands as one record of a stream."""
    state = job.state.value if job.state else UNKNOWN
    return {
        "type": "state",
        "id": job_id,
        "state": state,
        "at": at,
        "status": job.status,
        "message": job.error,
        "waitingFor": None,
        "exitCode": None,
    }


def result_item(job_id: str, job: CloudJob, at: str) -> Item:
    """Return the end of a job as one record of a stream."""
    return {**change_item(job_id, job, at), "type": "result", "reason": job.status, "workdir": None}


def stats(tally: Tally, *, scope: str | None, read: int, truncated: bool) -> Document:
    """Make the totals over jobs: of all, then of each experiment, compute and user."""
    groups: dict[str, tuple[dict[str, Json], ...]] = {
        group: tuple({"name": part.name, **_total(part.total)} for part in parts)
        for group, parts in tally.groups.items()
    }
    rows: list[Item] = [{"group": "all", "name": None, **_total(tally.overview)}]
    rows += [{"group": group, **part} for group, parts in groups.items() for part in parts]
    body: Item = {
        "scope": scope,
        "read": read,
        "truncated": truncated,
        "overview": _total(tally.overview),
        "groups": groups,
    }
    return Document("job.stats", body, rows=rows, columns=TOTALS, footer=[f"over {text.plural(read, 'job')}"])


def _total(total: Total) -> dict[str, Json]:
    return codec.fields(total)


def job_schema() -> Schema:
    """Return the schema of one job."""
    from aj.model.cloudjob import CloudJob

    fields = schema.fields(CloudJob)
    rest = {name: kind for name, kind in fields.items() if name != "kind"}
    return schema.record(**rest, type=schema.TEXT, shown_state=schema.TEXT)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.model.tally import GROUPS, Total

    total = schema.of(Total)
    part = schema.record(name=schema.TEXT, **schema.fields(Total))
    groups = schema.record(**dict.fromkeys(GROUPS, schema.many(part)))
    return {
        "job.stats": schema.record(
            scope=schema.maybe(schema.TEXT),
            read=schema.WHOLE,
            truncated=schema.YES_NO,
            overview=total,
            groups=groups,
        )
    }
