"""Routes of the jobs of workspaces and clusters: listed, counted, shown, ended, deleted, and their log files."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.azure import JobQuery, place
from aj.wire.paths import Route

BETWEEN = "\n"  # words of one list; the only sign that no name of a job has


def listing(call: Call) -> Answer:
    """List jobs of one workspace or of all, newest first."""
    workspace, query = place(call.segments[0]), _query(call)
    with call.line.alive():
        return reply(call.engine.jobs_at(workspace).jobs(call.project, workspace, query))


def stats(call: Call) -> Answer:
    """Count the jobs of a workspace."""
    workspace, query = place(call.segments[0]), _query(call)
    with call.line.alive():
        return reply(call.engine.jobs_at(workspace).stats(call.project, workspace, query))


def show(call: Call) -> Answer:
    """Show one job."""
    (workspace, name), why = _job(call), call.flag("why")
    with call.line.alive():
        return reply(call.engine.jobs_at(workspace).job(call.project, workspace, name, why=why))


def cancel(call: Call) -> Answer:
    """Ask a job to end."""
    workspace, name = _job(call)
    return reply(call.engine.jobs_at(workspace).cancel(call.project, workspace, name))


def delete(call: Call) -> Answer:
    """Delete a job that has ended."""
    workspace, name = _job(call)
    return reply(call.engine.jobs_at(workspace).delete(call.project, workspace, name))


def files(call: Call) -> Answer:
    """List the log files of a job."""
    (workspace, name), sizes = _job(call), call.flag("sizes")
    with call.line.alive():
        return reply(call.engine.jobs_at(workspace).files(call.project, workspace, name, sizes=sizes))


def log(call: Call) -> Answer:
    """Read the next page of a log file."""
    workspace, name = _job(call)
    file, cursor = call.query.get("file", ""), call.query.get("cursor")
    tail = call.whole("tail", 0) if "tail" in call.query else None
    with call.line.alive():
        return reply(call.engine.jobs_at(workspace).log(call.project, workspace, name, file, cursor, tail))


def _job(call: Call) -> tuple[str, str]:
    """Return where a job is, and its name there."""
    where, name = call.segments
    return place(where), name


def _query(call: Call) -> JobQuery:
    return JobQuery(
        states=_words(call, "state"),
        experiment=call.query.get("experiment"),
        kind=call.query.get("kind"),
        tags=_words(call, "tag"),
        since_s=call.seconds("since_s") if "since_s" in call.query else None,
        archived=call.flag("archived"),
        limit=call.whole("limit", JobQuery().limit),
    )


def _words(call: Call, name: str) -> tuple[str, ...]:
    return tuple(word for word in call.query.get(name, "").split(BETWEEN) if word)


HANDLERS: Mapping[Route, Handler] = {
    paths.CLOUD_JOBS: listing,
    paths.CLOUD_STATS: stats,
    paths.CLOUD_JOB: show,
    paths.CLOUD_CANCEL: cancel,
    paths.CLOUD_DELETE: delete,
    paths.CLOUD_FILES: files,
    paths.CLOUD_LOG: log,
}
