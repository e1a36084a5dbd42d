"""Deployments as rows, and one of them with its replicas and the jobs that they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import text
from aj.model.deployment import DeploymentStatus
from aj.view import schema
from aj.view.document import Column, Form, listing, single
from aj.wire import codec

if TYPE_CHECKING:
    from aj.model.deployment import Holding, Replica
    from aj.view.document import Document, Item
    from aj.view.schema import Schema

WORDS = 300  # characters of the last words of a program: the rest stands in its log
COLUMNS = (
    Column("name", "label", form=Form.ID),
    Column("state", form=Form.STATE),
    Column("ready", "ready_text"),
    Column("busy", form=Form.NUMBER),
    Column("queued", form=Form.NUMBER),
    Column("age", "created_at", Form.AGE),
    Column("command", flexible=True),
)
FIELDS = (
    Column("name", "label", form=Form.ID),
    Column("state", form=Form.STATE),
    Column("ready", "ready_text"),
    Column("busy", form=Form.NUMBER),
    Column("queued", form=Form.NUMBER),
    Column("not put away", "unreleased", Form.NUMBER),
    Column("jobs of a replica", "jobs_per_replica", Form.NUMBER),
    Column("command"),
    Column("directory"),
    Column("revision", form=Form.NUMBER),
    Column("created", "created_at", Form.TIME),
    Column("updated", "updated_at", Form.TIME),
    Column("deleting since", "deleting_since", Form.TIME),
)


def item(one: DeploymentStatus) -> Item:
    """Return a deployment as JSON values."""
    whole = codec.fields(one)
    label = f"{one.name} (managed)" if one.managed else one.name
    return {**whole, "label": label, "ready_text": f"{one.ready} of {one.replicas}"}


def deployments(found: Sequence[DeploymentStatus]) -> Document:
    """Make the list of deployments."""
    rows = [item(one) for one in found]
    return listing("deployment.list", rows, COLUMNS, noun="deployments", ids="name")


def status(one: DeploymentStatus) -> Document:
    """Make the document of one deployment: below its fields a line for each replica and each job in a slot."""
    replicas = (line for member in one.members for line in _replica_line(member).splitlines())
    lines = [*replicas, *(_job_line(held) for held in one.jobs)]
    return single("deployment", item(one), FIELDS, ids="name", after=lines)


def _replica_line(member: Replica) -> str:
    parts = [f"replica {member.slot}", member.state.value]
    parts += [f"process {member.pid}"] if member.pid else []
    parts += [text.plural(member.restarts, "restart")] if member.restarts else []
    if member.due_at is not None:
        parts += [f"again at {member.due_at[:19]}Z", member.message or f"exit code {member.exit_code}"]
    line = "  ".join(parts)
    if member.last_logs is None:
        return line
    said = f"  last words: {member.last_words[:WORDS]}\n" if member.last_words else ""
    return f"{line}\n{said}  its log: {member.last_logs}"


def _job_line(held: Holding) -> str:
    state = "ended, and not put away" if held.unreleased else "running"
    return f"job {held.job_id}  {state}  replica {held.slot}  since {held.claimed_at[:19]}Z"


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    fields = schema.fields(DeploymentStatus)
    one = schema.record(**fields, label=schema.TEXT, ready_text=schema.TEXT)
    return {"deployment.list": schema.listing(one), "deployment": schema.single(one)}
