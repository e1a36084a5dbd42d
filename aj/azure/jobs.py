"""Jobs of a workspace: put, read, listed, asked to end, deleted. One request each, and what a row tells.

Statuses are the service's own words here; what they mean to us is decided above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from aj.azure import arm
from aj.azure.arm import Call, Session, Workspace
from aj.azure.times import moment
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.net import http
from aj.net.document import Document
from aj.net.http import Response

SYSTEM_TAG = "_aml_system_"
FINAL = frozenset({"Completed", "Failed", "Canceled"})


class View(StrEnum):
    """Which jobs a list shows."""

    ACTIVE = "ActiveOnly"
    ARCHIVED = "ArchivedOnly"
    ALL = "All"


@dataclass(frozen=True)
class Job:
    """A job as the service tells of it. Moments are seconds since the epoch."""

    id: str
    name: str
    kind: str
    display_name: str | None
    experiment: str | None
    status: str
    created_at: float | None
    started_at: float | None
    ended_at: float | None
    compute_id: str | None
    environment_id: str | None
    instance: str | None
    nodes: int | None
    tier: str | None
    portal: str | None
    tags: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    created_by: str | None = None
    gpus_per_node: int | None = None
    code_sha256: str | None = None  # of the archive that our bootstrap unpacks

    @property
    def aj_id(self) -> str | None:
        """The id that we gave it, or None when it is not ours."""
        return self.properties.get("aj_id")

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def queued_s(self) -> float | None:
        """How long it waited for its start; None as long as that is not known."""
        return _between(self.created_at, self.started_at)

    def ran_s(self, now: float) -> float | None:
        """How long it ran, or has run until now; None when it never started."""
        return _between(self.started_at, self.ended_at or (None if self.is_final else now))


def get(session: Session, workspace: Workspace, name: str) -> Job:
    """Read a job. Raises NotFound."""
    return read(_call(session, workspace, name, doing=f"read job {name}").get())


def find(session: Session, workspace: Workspace, name: str) -> Job | None:
    """Read a job; None when there is none of that name."""
    try:
        return get(session, workspace, name)
    except NotFound:
        return None


def put(session: Session, workspace: Workspace, name: str, body: Mapping[str, Json]) -> Job:
    """Submit a job, once. Raises OutcomeUnknown when it may have arrived, Refused or RemoteError when not."""
    call = _call(session, workspace, name, doing=f"submit job {name}", limit=http.LONG)
    return read(call.put(body))


def each(
    session: Session,
    workspace: Workspace,
    *,
    view: View = View.ACTIVE,
    kind: str | None = None,
    tag: str | None = None,
    properties: str | None = None,
) -> Iterator[Job]:
    """Yield jobs, newest first as the service lists them, each page fetched when it is wanted."""
    asked = {"listViewType": view.value, "jobType": kind, "tag": tag, "properties": properties}
    query = {name: value for name, value in asked.items() if value is not None}
    call = arm.in_workspace(session, workspace, "jobs", doing=f"list the jobs of workspace {workspace}", query=query)
    return (read(row) for row in call.each())


def cancel(session: Session, workspace: Workspace, name: str) -> None:
    """Ask a job to end, once. Raises Refused when it cannot, OutcomeUnknown when the answer was lost."""
    _call(session, workspace, name, "cancel", doing=f"cancel job {name}").post()


def delete(session: Session, workspace: Workspace, name: str) -> Response:
    """Delete a job, once, and return the answer: 202 means that it goes on. A job that is gone answers 404."""
    return _call(session, workspace, name, doing=f"delete job {name}").delete(expects=(404,))


def deletion(session: Session, workspace: Workspace, name: str) -> http.Request:
    """Return the request by which a job is deleted, to follow the addresses that its answer names."""
    return _call(session, workspace, name, doing=f"delete job {name}").request("DELETE")


def read(row: Document) -> Job:
    """Read one job. Raises RemoteError naming a field that is not as it should be."""
    own = row.inner("properties")
    noted = own.texts("properties")
    resources = own.inner("resources")
    machine = resources.inner("properties", "AISuperComputer")
    instance = machine.text("instanceType") or resources.text("instanceType")
    return Job(
        row.need_text("id"),
        row.need_text("name"),
        own.text("jobType") or "",
        own.text("displayName"),
        own.text("experimentName"),
        own.text("status") or "Unknown",
        moment(row.text("systemData", "createdAt")),
        moment(noted.get("StartTimeUtc")),
        moment(noted.get("EndTimeUtc")),
        own.text("computeId"),
        own.text("environmentId"),
        instance.replace("Singularity.", "") if instance else None,
        resources.whole("instanceCount"),
        machine.text("slaTier"),
        own.text("services", "Studio", "endpoint"),
        {name: value for name, value in own.texts("tags").items() if not name.startswith(SYSTEM_TAG)},
        noted,
        row.text("systemData", "createdBy"),
        _gpus(own),
        own.inner("environmentVariables").text("AJ_CODE_ARCHIVE_SHA256"),
    )


def _gpus(own: Document) -> int | None:
    """How many GPUs each node has, where we said so ourselves; the service does not tell."""
    told = own.inner("environmentVariables").text("AJ_GPUS_PER_NODE") or ""
    return int(told) if told.isascii() and told.isdigit() else None


def _call(
    session: Session, workspace: Workspace, name: str, *more: str, doing: str, limit: http.Limit = http.STANDARD
) -> Call:
    return arm.in_workspace(session, workspace, "jobs", name, *more, doing=doing, limit=limit)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)
