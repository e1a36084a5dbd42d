"""Jobs of workspaces: listed with filters, shown with the reason of a failure, counted, asked to end, deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from aj.azure import endings, jobs, states, workspaces
from aj.azure.arm import Session, Workspace
from aj.azure.fan import gather
from aj.azure.history import Fault, History
from aj.azure.jobs import Job, View
from aj.base.clock import rfc3339
from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.engine.visit import parts, refuse_silence
from aj.model import exits, tally
from aj.model.cloudjob import CloudJob
from aj.model.state import JobState
from aj.model.tally import Sample
from aj.wire.azure import CloudJobAnswer, CloudJobList, CloudStats, JobQuery

READ = 2000  # rows that a list looks at: some 70 pages, which take half a minute
UNKNOWN = "unknown"  # the word for a state that the service does not tell
KINDS = {kind.lower(): kind for kind in ("AutoML", "Command", "Labeling", "Pipeline", "Spark", "Sweep")}
SING = "/virtualclusters/"


def told(job: Job, workspace: Workspace, now: float, error: str | None = None) -> CloudJob:
    """Return a job as it is told; `now` is seconds since the epoch."""
    return CloudJob(
        name=job.name,
        workspace="/".join((workspace.subscription, workspace.group, workspace.name)),
        service="sing" if SING in (job.compute_id or "").lower() else "aml",
        status=job.status,
        state=states.state_of(job.status),
        kind=job.kind,
        display_name=job.display_name,
        experiment=job.experiment,
        created_at=_moment(job.created_at),
        started_at=_moment(job.started_at),
        ended_at=_moment(job.ended_at),
        duration_s=_rounded(job.ran_s(now)),
        queued_s=_rounded(job.queued_s),
        compute=_last(job.compute_id),
        environment=_environment(job.environment_id),
        instance=job.instance,
        nodes=job.nodes,
        gpus=job.gpus_per_node,
        tier=job.tier,
        user=job.created_by,
        tags=job.tags,
        aj_id=job.aj_id,
        error=error,
        portal=job.portal,
    )


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _last(resource_id: str | None) -> str | None:
    return resource_id.rstrip("/").rpartition("/")[2] if resource_id else None


def _environment(resource_id: str | None) -> str | None:
    name, version, number = (resource_id or "").rpartition("/versions/")
    return f"{_last(name)}:{number}" if version else _last(resource_id)


# Lists


@dataclass(frozen=True)
class Scan:
    """Jobs that were wanted, how many were looked at, and why it stopped before the end, if it did."""

    jobs: tuple[Job, ...]
    read: int
    stopped: str | None = None


def scan(
    rows: Iterable[Job], is_wanted: Callable[[Job], bool], *, limit: int, oldest: float | None, most: int = READ
) -> Scan:
    """Look through jobs, newest first, until enough were found (0: no matter how many), one is too old, or `most`.

    `oldest` is seconds since the epoch.
    """
    found: list[Job] = []
    read = 0
    for job in rows:
        if oldest is not None and job.created_at is not None and job.created_at < oldest:
            break
        if limit and len(found) == limit:
            return Scan(tuple(found), read, f"stopped after {limit} jobs: `-n N` shows more")
        if read == most:
            return Scan(tuple(found), read, f"only the newest {most} jobs were looked at")
        read += 1
        if is_wanted(job):
            found.append(job)
    return Scan(tuple(found), read)


def wanted(query: JobQuery) -> Callable[[Job], bool]:
    """Return the filter of a query. Raises UserError on a word that is no state and no type."""
    words = {word.lower() for word in query.states}
    known = {state.value for state in JobState} | {word.lower() for word in states.WORDS} | {UNKNOWN}
    for word in query.states:
        if word.lower() not in known:
            raise UserError(f"`{word}` is no state", hint=f"one of {', '.join(sorted(known))}", code="unknown-state")
    tags = [_tag(word) for word in query.tags]

    def is_wanted(job: Job) -> bool:
        state = states.state_of(job.status)
        said = {job.status.lower(), state.value if state else UNKNOWN}
        has_tags = all(name in job.tags and value in (None, job.tags[name]) for name, value in tags)
        return bool(not words or words & said) and query.experiment in (None, job.experiment) and has_tags

    return is_wanted


def _tag(word: str) -> tuple[str, str | None]:
    """Read `name`, `name:value` or `name=value`."""
    at = min((word.find(mark) for mark in ":=" if mark in word), default=-1)
    return (word, None) if at < 0 else (word[:at].strip(), word[at + 1 :].strip())


def _kind(word: str | None) -> str | None:
    if word is None:
        return None
    if word.lower() not in KINDS:
        raise UserError(f"`{word}` is no type of job", hint=f"one of {', '.join(sorted(KINDS))}", code="unknown-type")
    return KINDS[word.lower()]


def _rows(session: Session, workspace: Workspace, query: JobQuery) -> Iterator[Job]:
    view = View.ARCHIVED if query.archived else View.ACTIVE
    return jobs.each(session, workspace, view=view, kind=_kind(query.kind))


def _scan(session: Session, workspace: Workspace, query: JobQuery, most: int = READ) -> Scan:
    oldest = None if query.since_s is None else session.clock.now() - query.since_s
    rows = _rows(session, workspace, query)
    return scan(rows, wanted(query), limit=query.limit, oldest=oldest, most=most)


def listing(session: Session, workspace: Workspace, query: JobQuery) -> CloudJobList:
    """List jobs of one workspace, newest first. Raises UserError, and as jobs.each."""
    found = _scan(session, workspace, query)
    now = session.clock.now()
    return CloudJobList(
        tuple(told(job, workspace, now) for job in found.jobs),
        str(workspace),
        found.read,
        truncated=found.stopped is not None,
        stopped=found.stopped,
    )


def listing_of_all(session: Session, subscriptions: Sequence[str], query: JobQuery) -> CloudJobList:
    """List jobs of every workspace, newest first, and the workspaces that gave no answer.

    Raises UserError, and RemoteError when none did.
    """
    wanted(query)
    every = [one.at for one in workspaces.find(session, subscriptions)]
    found = gather(every, lambda at: listing(session, at, query), name=lambda at: f"workspace {at}")
    refuse_silence(found, "list jobs")
    rows = sorted((job for one in found.values for job in one.jobs), key=lambda job: job.created_at or "", reverse=True)
    shown = rows[: query.limit or None]
    stopped = next((one.stopped for one in found.values if one.stopped), None)
    if len(shown) < len(rows):
        stopped = f"stopped after {query.limit} jobs: `-n N` shows more"
    return CloudJobList(
        tuple(shown),
        None,
        sum(one.read for one in found.values),
        truncated=stopped is not None,
        stopped=stopped,
        failures=parts(found.failures),
    )


def stats(session: Session, workspace: Workspace, query: JobQuery) -> CloudStats:
    """Count jobs; the limit of the query is that of the rows that are looked at. Raises as `listing`."""
    found = _scan(session, workspace, replace(query, limit=0), most=query.limit or READ)
    now = session.clock.now()
    samples = [sample(told(job, workspace, now)) for job in found.jobs]
    return CloudStats(
        tally.of(samples), str(workspace), found.read, truncated=found.stopped is not None, stopped=found.stopped
    )


def sample(job: CloudJob) -> Sample:
    """Return what is counted of a job."""
    known = job.gpus is not None and job.duration_s is not None
    gpu_s = (job.gpus or 0) * (job.nodes or 1) * (job.duration_s or 0.0) if known else None
    return Sample(job.state, job.experiment, job.compute, job.user, gpu_s, job.queued_s)


# One job


def show(session: Session, workspace: Workspace, name: str) -> CloudJobAnswer:
    """Return one job; of one that did not complete, with the reason. Raises NotFound."""
    job = jobs.get(session, workspace, name)
    now = session.clock.now()
    if not job.is_final or job.status == "Completed":
        return CloudJobAnswer(told(job, workspace, now))
    try:
        fault = History.of(session, workspaces.get(session, workspace)).details(job.name).fault
    except AjError as error:
        return CloudJobAnswer(
            told(job, workspace, now), warnings=(f"why {name} is {job.status} could not be read: {error.message}",)
        )
    return CloudJobAnswer(told(job, workspace, now, _reason(fault)))


def _reason(fault: Fault | None) -> str:
    """The outer code, the code and words of the deepest error, and what one of our own exit codes means."""
    if fault is None:
        return "the service gives no reason"
    words = ": ".join(part for part in (fault.code, fault.inner_code, fault.message) if part)
    meaning = exits.meaning(fault.message)
    return f"{words} ({meaning})" if meaning else words


def cancel(session: Session, workspace: Workspace, name: str) -> CloudJobAnswer:
    """Ask a job to end, unless it has. Raises as endings.cancel."""
    found = endings.cancel(session, workspace, name)
    return CloudJobAnswer(told(found.job, workspace, session.clock.now()), was_final=found.was_final)


def delete(session: Session, workspace: Workspace, name: str) -> str:
    """Delete a job that has ended; return what was done in a word: ok, or noop when it was gone. Raises as endings."""
    if jobs.find(session, workspace, name) is None:
        return "noop"
    endings.delete(session, workspace, name, session.clock)
    return "ok"
