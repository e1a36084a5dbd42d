"""Jobs of this machine as rows, as records, and as the lines of `wait`.

The record of a job has the published spelling of its keys (`completedAt`), which other tools know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base import clock, text, units
from aj.base.noun import dataclass
from aj.model import money, spend
from aj.model.record import RecordState
from aj.model.state import JobState
from aj.model.workload import Event
from aj.view import action, bucket, cloudjob, queue, schema, told
from aj.view import scope as scopes
from aj.view.document import Column, Document, Form, listing, single

if TYPE_CHECKING:
    from aj.model.cloudjob import CloudJob
    from aj.model.json import Json
    from aj.model.record import Record
    from aj.model.ticket import Ticket
    from aj.model.workload import Host, Retry, Workload
    from aj.view.document import Item
    from aj.view.schema import Schema
    from aj.view.scope import Scope
    from aj.wire.messages import JobAnswer

Moment = Callable[[str], str]
LAST_EVENTS = 8  # an ordinary life and what happened lately of a longer one; `-v` and JSON have all
# A status of which nothing is known yet.
NOTHING: Item = {
    **dict.fromkeys(("workload", "cloud", "ticket", "jobsAhead", "retry", "retry_text", "logs")),
    **dict.fromkeys(("processes_text", "files_text", "spot_text", "cost_text")),
    **dict.fromkeys(("checkpoint", "checkpoint_where", "checkpoint_text")),
    "events": (),
    "eventsTotal": 0,
}
COLUMNS = (
    Column("id", form=Form.ID),
    Column("state", form=Form.STATE),
    Column("service"),
    Column("name", form=Form.ID),
    Column("age", "submittedAt", Form.AGE),
    Column("duration", "duration_s", Form.SECONDS),
    Column("exit", "exitCode", Form.NUMBER),
    Column("command", flexible=True),
)
BRIEF = (
    *COLUMNS[:4],
    Column("duration", "duration_s", Form.SECONDS),
    Column("exit", "exitCode", Form.NUMBER),
    Column("message", flexible=True),
)
FIELDS = (
    Column("id", "workload.id", Form.ID),
    Column("state", "workload.state", Form.STATE),
    Column("name", "workload.name", Form.ID),
    Column("service", "workload.service"),
    Column("template", "workload.template"),
    Column("command", "workload.command"),
    Column("image", "workload.image"),
    Column("image digest", "workload.imageDigest"),
    Column("nodes", "workload.nodes", Form.NUMBER),
    Column("processes", "processes_text"),
    Column("waits for", "workload.waitingFor"),
    Column("jobs ahead", "jobsAhead", Form.NUMBER),
    Column("retry", "retry_text"),
    Column("message", "workload.message"),
    Column("exit code", "workload.exitCode", Form.NUMBER),
    Column("reason", "workload.reason"),
    Column("deployment", "workload.deploymentId"),
    Column("agent", "workload.agent"),
    Column("session", "session_text"),
    Column("submitted", "workload.submittedAt", Form.TIME),
    Column("started", "workload.startedAt", Form.TIME),
    Column("completed", "workload.completedAt", Form.TIME),
    Column("duration", "workload.duration_s", Form.SECONDS),
    Column("cost", "cost_text"),
    Column("terminating since", "workload.terminatingSince", Form.TIME),
    Column("spot", "spot_text"),
    Column("cleanup pending", "workload.cleanupError"),
    Column("checkpoint bucket", "checkpoint_where"),
    Column("checkpoint", "checkpoint_text"),
    Column("data error", "workload.dataError"),
    Column("files", "files_text"),
    Column("logs"),
    Column("notes", "workload.notes"),
)


@dataclass(frozen=True)
class Shown:
    """What a watcher of a job has been told: the newest event, and what the job waited for."""

    event: int = 0
    waiting_for: str | None = None


def record(job: Workload, now: float) -> Item:
    """Return a job as JSON values, under its published keys. `now` is seconds since the epoch."""
    return {
        "id": job.id,
        "state": job.state.value,
        "name": job.name,
        "service": job.service,
        "template": job.template,
        "project": job.project,
        "ticket": job.ticket,
        "command": job.command,
        "image": job.image,
        "nodes": job.nodes,
        "processesPerNode": job.processes_per_node,
        "needs": {"cpus": job.needs.cpus, "memory_bytes": job.needs.memory_bytes, "gpus": job.needs.gpus},
        "codeDigest": job.code.digest if job.code else None,
        "createdAt": job.created_at,
        "submittedAt": job.submitted_at,
        "startedAt": job.started_at,
        "completedAt": job.completed_at,
        "cleanedAt": job.cleaned_at,
        "duration_s": duration_s(job, now),
        "exitCode": job.exit_code,
        "oomKilled": job.oom_killed,
        "reason": job.reason,
        "message": job.message,
        "waitingFor": job.waiting_for,
        "cleanupError": job.cleanup_error,
        "dataError": job.data_error,
        "attempt": job.attempt,
        "setupAttempt": job.setup_attempt,
        "recoveries": job.recoveries,
        "submissionRevision": job.submission_revision,
        "claimDeadlineAt": clock.rfc3339(job.deadline_at) if job.deadline_at is not None else None,
        "claimed": job.claimed,
        "deploymentId": job.targeted.deployment if job.targeted is not None else None,
        "terminatingSince": job.terminating_since,
        "workdir": job.workdir,
        "notes": job.notes,
        "agent": job.agent,
        "session": job.session,
        "sessionLabel": job.session_title,
        "imageDigest": job.image_digest,
        "spot": job.spot,
        "maxRuntime_s": job.max_runtime_s,
        "maxCost": None if job.max_cost is None else money.number(job.max_cost),
        **_costs(job, now),
        "vms": tuple(_host(host) for host in job.hosts),
    }


def _costs(job: Workload, now: float) -> Item:
    """What all its hosts have cost. Estimated while one of them still counts; null when one has no price."""
    amount, hosts = _cost(job, now), spend.charges(job)
    runs = any(charge.ended_at is None for charge in hosts)
    return {
        "totalCost": None if amount is None else money.number(amount),
        "costSource": None if amount is None else "estimated" if runs else "actual",
        "vmDurationMs": sum(charge.lasted_us(0, now) for charge in hosts) // 1000,
        "vmCount": len(hosts),
    }


def _cost(job: Workload, now: float) -> int | None:
    hosts = spend.charges(job)
    if any(charge.price is None for charge in hosts):
        return None
    return sum(charge.cost(0, now) for charge in hosts)


def _cost_text(job: Workload, now: float) -> str | None:
    """Write what a job has cost, unless it is free."""
    amount = _cost(job, now)
    if not amount and job.max_cost is None:
        return None
    words = "unknown" if amount is None else money.text(amount)
    return words if job.max_cost is None else f"{words} of at most {money.exact(job.max_cost)}"


def _host(host: Host) -> Item:
    price = None if host.price is None else money.number(host.price)
    return {
        "createdAt": host.created_at,
        "endedAt": host.ended_at,
        "releasedAt": host.released_at,
        "pricePerHour": price,
    }


def recorded(record: Record) -> Item:
    """Return a submission to another place under the same keys, as far as it has them. Its state is its own."""
    shape = record.shape
    return {
        **_unknown(),
        "id": record.id,
        "state": record.state.value,
        "name": record.azure_name or record.name,
        "service": record.service,
        "template": record.template,
        "project": record.project,
        "ticket": record.ticket,
        "command": record.command,
        "image": record.image,
        "nodes": shape.nodes if shape else 1,
        "processesPerNode": shape.processes_per_node if shape else 1,
        "needs": {"cpus": None, "memory_bytes": None, "gpus": shape.gpus_per_node if shape else 0},
        "codeDigest": record.code.digest if record.code else None,
        "createdAt": record.ts,
        "submittedAt": record.ts,
        "message": record.note,
        "agent": record.agent,
        "session": record.session,
        "sessionLabel": record.session_title,
    }


def ended(job: CloudJob, ticket: Ticket) -> Item:
    """Return a job of a workspace that has ended under the same keys, as far as it has them."""
    return {
        **_unknown(),
        "id": ticket.id,
        "state": job.state.value if job.state else None,
        "name": job.name,
        "service": ticket.service,
        "template": ticket.template,
        "ticket": ticket.ticket,
        "nodes": job.nodes or 1,
        "needs": {"cpus": None, "memory_bytes": None, "gpus": job.gpus or 0},
        "codeDigest": ticket.code.digest if ticket.code else None,
        "createdAt": job.created_at or ticket.created_at,
        "submittedAt": ticket.created_at,
        "startedAt": job.started_at,
        "completedAt": job.ended_at,
        "duration_s": job.duration_s,
        "reason": job.status,
        "message": job.error,
        "agent": ticket.agent,
        "session": ticket.session,
        "sessionLabel": ticket.session_title,
    }


def _unknown() -> dict[str, Json]:
    """The keys of a job of which nothing is known."""
    wholes = ("attempt", "setupAttempt", "recoveries", "submissionRevision")
    known: dict[str, Json] = {
        **dict.fromkeys(wholes, 0),
        "processesPerNode": 1,
        "oomKilled": False,
        "claimed": False,
        "spot": False,
        "notes": (),
        "vms": (),
    }
    return {**dict.fromkeys(_fields(job_schema())), "command": "", **known}


def duration_s(job: Workload, now: float) -> float | None:
    """Return how long the processes have run or did run, in seconds; None before they started."""
    if job.started_at is None:
        return None
    end = clock.from_rfc3339(job.completed_at) if job.completed_at else now
    return round(max(0.0, end - clock.from_rfc3339(job.started_at)), 3)


def jobs(found: Sequence[Item], *, truncated: bool = False, scope: Scope) -> Document:
    """Make the list of jobs and recorded submissions from their items, newest first."""
    made = listing(
        "job.list",
        found,
        COLUMNS,
        noun="jobs",
        ids="id",
        truncated=truncated,
        extra={"scope": scope.item, "failures": ()},
        footer=["there are more: `-n 0` shows all"] if truncated else [],
    )
    return scopes.with_sessions(made, scope, "sessionLabel")


def status(answer: JobAnswer, now: float, *, verbose: bool, moment: Moment = str) -> Document:
    """Make the document of one job: record, events, and what it waits for; a verbose text lists all events."""
    earlier = 0 if verbose else max(0, len(answer.events) - LAST_EVENTS)
    lines = [f"{text.plural(earlier, 'earlier event')}: `--verbose`"] if earlier else []
    lines += [event_line(event, moment) for event in answer.events[earlier:]]
    item, job = status_item(answer, now), answer.workload
    row = {**item, "session_text": scopes.session_words(job.session, job.session_title)}
    return replace(single("status", item, FIELDS, after=lines), rows=[row])


def promised(ticket: Ticket) -> Document:
    """Make the status document of a submission that is no job of this machine."""
    item = {**NOTHING, "ticket": queue.item(ticket)}
    columns = [replace(column, key=f"ticket.{column.key or column.title}") for column in queue.FIELDS]
    return replace(single("status", item, columns), rows=[{"ticket": queue.row(ticket)}])


def remote(job: CloudJob, ticket: Ticket | None) -> Document:
    """Make the status document of a job of a workspace, with what is recorded of its submission."""
    known = {**NOTHING, "cloud": cloudjob.item(job), "ticket": queue.item(ticket) if ticket else None}
    session = scopes.session_words(ticket.session, ticket.session_title) if ticket else None
    row = {**known, "tags_text": cloudjob.tags_text(job), "session_text": session}
    return replace(single("status", known, cloudjob.FIELDS), rows=[row])


def statuses(found: Sequence[Document], failures: Sequence[Item]) -> Document:
    """Make the list of several statuses, each as its own document has it; `failures` are ids without one."""
    rows = [_brief(document.rows[0]) for document in found]
    items = [document.body["item"] for document in found]
    body: Item = {"items": items, "failures": tuple(failures), "truncated": False, "next_cursor": None}
    return Document("status.list", body, rows, BRIEF, ids=[str(row["id"]) for row in rows], empty="no such jobs")


def _brief(item: Item) -> Item:
    """Return one line of a status: of a job here, of one elsewhere, or of a submission that is no job."""
    workload, cloud, ticket = item["workload"], item["cloud"], item["ticket"]
    if isinstance(workload, Mapping):
        return workload
    if isinstance(cloud, Mapping):
        job_id, state = cloud["aj_id"] or cloud["name"], cloud["shown_state"]
        return {**cloud, "id": job_id, "state": state, "message": cloud["error"]}
    assert isinstance(ticket, Mapping), "a status is about something"
    error = ticket["error"]
    return {**ticket, "message": error["message"] if isinstance(error, Mapping) else ticket["detail"]}


def status_item(answer: JobAnswer, now: float) -> Item:
    """Return the status of one job as JSON values."""
    job = answer.workload
    return {
        "workload": record(job, now),
        "cloud": None,
        "ticket": None,
        "events": tuple(event_item(job.id, event) for event in answer.events),
        "eventsTotal": answer.events_total,
        "jobsAhead": answer.jobs_ahead,
        "retry": _retry(job.retry),
        "retry_text": _retry_text(job.retry, now),
        "processes_text": _processes_text(job),
        "files_text": files_text(job),
        "spot_text": _spot_text(job),
        "cost_text": _cost_text(job, now),
        "checkpoint": bucket.checkpoint_item(answer.checkpoints),
        "checkpoint_where": bucket.checkpoint_where(answer.checkpoints),
        "checkpoint_text": bucket.checkpoint_text(answer.checkpoints, now),
        "logs": answer.logs,
    }


def event_item(job_id: str, event: Event) -> Item:
    """Return one change of state as JSON values."""
    return {
        "id": event.number,
        "workloadId": job_id,
        "state": event.state.value,
        "createdAt": event.at,
        "message": event.message,
        "metadata": event.metadata,
    }


def _processes_text(job: Workload) -> str:
    """Write how many processes there are; over several nodes also how many each has."""
    total = str(job.nodes * job.processes_per_node)
    return f"{total} ({job.processes_per_node} a node)" if job.nodes > 1 else total


def _spot_text(job: Workload) -> str | None:
    """Write how often a job on spot has lost its host."""
    if not job.spot:
        return None
    times = text.plural(job.recoveries, "recovery", "recoveries")
    return f"{times}, {text.plural(len(job.hosts), 'host')} so far"


def files_text(job: Workload) -> str | None:
    """Write where the files of a job are; of several nodes the folder that holds them all."""
    if job.workdir is None or job.nodes == 1:
        return job.workdir
    return f"{job.workdir.rpartition('/')[0]} (node0 to node{job.nodes - 1})"


def event_line(event: Event, moment: Moment = str) -> str:
    """Write one change of state as a line: time, state, message. `moment` writes an RFC 3339 time."""
    return f"{moment(event.at)}  {event.state.value}" + (f"  {event.message}" if event.message else "")


def news(answer: JobAnswer, shown: Shown, now: float) -> tuple[Shown, list[Event]]:
    """Return what of an answer is new to who has seen `shown`: its events, and what the job waits for as one more."""
    job = answer.workload
    found = [event for event in answer.events if event.number > shown.event]
    newest = max([shown.event, *(event.number for event in found)])
    if not job.waiting_for or job.state.is_final or job.waiting_for == shown.waiting_for:
        return Shown(newest, job.waiting_for), found
    waits = Event(newest, job.state, clock.rfc3339(now), job.waiting_for, {"waitingFor": job.waiting_for})
    return Shown(newest, job.waiting_for), [*found, waits]


def _retry(retry: Retry | None) -> Item | None:
    if retry is None:
        return None
    return {
        "attempt": retry.attempt,
        "earliestAt": clock.rfc3339(retry.earliest_at),
        "latestAt": clock.rfc3339(retry.latest_at),
        "diagnosis": retry.cause,
        "message": retry.message,
    }


def _retry_text(retry: Retry | None, now: float) -> str | None:
    if retry is None:
        return None
    due = units.duration(retry.earliest_at - now) if retry.earliest_at > now else "now"
    return f"attempt {retry.attempt} in {due} ({retry.cause}: {retry.message})"


def why(answer: JobAnswer) -> Document:
    """Make the list of what keeps a job from running, the first obstacle first."""
    return obstacles(answer.workload.id, answer.workload.state.value, _obstacles(answer))


def obstacles(job_id: str, state: str, reasons: Sequence[str]) -> Document:
    """Make the list of what keeps a job in its state, the first obstacle first."""
    items: list[Item] = [{"place": at, "reason": reason} for at, reason in enumerate(reasons, start=1)]
    body: Item = {"id": job_id, "state": state, "items": tuple(items)}
    return Document("job.why", body, rows=items, columns=(Column("place", form=Form.NUMBER), Column("reason")))


def _obstacles(answer: JobAnswer) -> list[str]:
    job = answer.workload
    if job.state.is_final:
        return [f"it has ended: {job.state}" + (f", {job.message}" if job.message else "")]
    if job.state is JobState.RUNNING:
        return ["nothing: it runs"]
    found = [job.waiting_for] if job.waiting_for else []
    if job.retry:
        found.append(f"attempt {job.retry.attempt} was not possible: {job.retry.message}")
    if answer.jobs_ahead:
        found.append(f"{text.plural(answer.jobs_ahead, 'job')} submitted before it wait too")
    if job.state.is_setup:
        found.append(f"it is being set up: {job.state}")
    if job.terminating_since:
        found.append("its end was asked for")
    return found or ["it is next in line"]


def state_line(job: Workload) -> str:
    """Write where a job stands as one line of `wait`."""
    extra = job.message or job.waiting_for or (f"exit code {job.exit_code}" if job.exit_code is not None else None)
    return f"{job.id}  {job.state.value}" + (f"  {extra}" if extra else "")


def change_item(job_id: str, event: Event) -> Item:
    """Return one change of a job as a record of a stream, with what it waits for."""
    return {"type": "state", **event_item(job_id, event), "waitingFor": event.metadata.get("waitingFor")}


def state_item(job: Workload, at: str) -> Item:
    """Return a change of state as one record of a stream."""
    return {
        "type": "state",
        "id": job.id,
        "state": job.state.value,
        "at": at,
        "message": job.message,
        "waitingFor": job.waiting_for,
        "exitCode": job.exit_code,
    }


def result_item(job: Workload, at: str) -> Item:
    """Return the end of a job as one record of a stream."""
    return {**state_item(job, at), "type": "result", "reason": job.reason, "workdir": job.workdir}


def job_schema() -> Schema:
    """Return the schema of the record of one job."""
    maybe_text, maybe_whole, maybe_number = (schema.maybe(kind) for kind in (schema.TEXT, schema.WHOLE, schema.NUMBER))
    texts = ("id", "name", "service", "template", "ticket", "command", "createdAt", "submittedAt")
    open_texts = ("project", "image", "codeDigest", "startedAt", "completedAt", "cleanedAt", "reason", "message")
    more_texts = ("waitingFor", "cleanupError", "dataError", "claimDeadlineAt", "terminatingSince", "workdir")
    who = ("agent", "session", "sessionLabel", "deploymentId")
    wholes = ("nodes", "processesPerNode", "attempt", "setupAttempt", "recoveries", "submissionRevision")
    return schema.record(
        **dict.fromkeys(texts, schema.TEXT),
        **dict.fromkeys((*open_texts, *more_texts, *who), maybe_text),
        **dict.fromkeys(wholes, schema.WHOLE),
        state=schema.of(JobState),
        needs=schema.record(cpus=maybe_number, memory_bytes=maybe_whole, gpus=schema.WHOLE),
        duration_s=maybe_number,
        exitCode=maybe_whole,
        oomKilled=schema.YES_NO,
        claimed=schema.YES_NO,
        notes=schema.NAMES,
        imageDigest=maybe_text,
        spot=schema.YES_NO,
        maxRuntime_s=maybe_number,
        maxCost=maybe_number,
        totalCost=maybe_number,
        costSource=schema.maybe(schema.one_of("actual", "estimated")),
        vmDurationMs=maybe_whole,
        vmCount=maybe_whole,
        vms=schema.many(
            schema.record(createdAt=schema.TEXT, endedAt=maybe_text, releasedAt=maybe_text, pricePerHour=maybe_number)
        ),
    )


def _fields(of: Schema) -> dict[str, Schema]:
    fields = of["properties"]
    assert isinstance(fields, dict)
    return fields


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    maybe_text, maybe_whole = schema.maybe(schema.TEXT), schema.maybe(schema.WHOLE)
    state, job = schema.of(JobState), job_schema()
    event = schema.record(
        id=schema.WHOLE,
        workloadId=schema.TEXT,
        state=state,
        createdAt=schema.TEXT,
        message=maybe_text,
        metadata=schema.table(schema.ANY),
    )
    retry = schema.record(
        attempt=schema.WHOLE,
        earliestAt=schema.TEXT,
        latestAt=schema.TEXT,
        diagnosis=schema.TEXT,
        message=schema.TEXT,
    )
    one = schema.record(
        workload=schema.maybe(job),
        cloud=schema.maybe(cloudjob.job_schema()),
        ticket=schema.maybe(queue.ticket_schema()),
        events=schema.many(event),
        eventsTotal=schema.WHOLE,
        jobsAhead=maybe_whole,
        retry=schema.maybe(retry),
        retry_text=maybe_text,
        processes_text=maybe_text,
        files_text=maybe_text,
        spot_text=maybe_text,
        cost_text=maybe_text,
        checkpoint=schema.maybe(bucket.checkpoint_schema()),
        checkpoint_where=maybe_text,
        checkpoint_text=maybe_text,
        logs=maybe_text,
    )
    obstacle = schema.record(place=schema.WHOLE, reason=schema.TEXT)
    submission = schema.record(**{**_fields(job), "state": schema.of(RecordState)})
    listed: Schema = {"anyOf": [job, submission, cloudjob.job_schema()]}
    return {
        "job.list": schema.listing(listed, scope=scopes.item_schema(), failures=told.failures_schema()),
        "status": schema.single(one),
        "status.list": schema.listing(one, failures=schema.many(action.item_schema())),
        "job.why": schema.record(id=schema.TEXT, state=schema.TEXT, items=schema.many(obstacle)),
    }
