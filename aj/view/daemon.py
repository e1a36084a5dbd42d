"""The daemon as a person sees it: state, version, how busy it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema
from aj.view.document import Column, Form, result, single
from aj.wire import codec
from aj.wire.messages import Busy

if TYPE_CHECKING:
    from aj.view.document import Document, Item
    from aj.view.schema import Schema
    from aj.wire.daemon import Status
    from aj.wire.messages import Hello

FIELDS = (
    Column("state", form=Form.STATE),
    Column("version"),
    Column("pid", form=Form.NUMBER),
    Column("uptime", "uptime_s", Form.SECONDS),
    Column("requests", "busy.requests"),
    Column("submitting", "busy.tickets_running"),
    Column("tickets waiting", "busy.tickets_queued"),
    Column("jobs running", "busy.jobs_running"),
    Column("jobs waiting", "busy.jobs_queued"),
    Column("projects", "projects_text"),
    Column("reason"),
    Column("socket"),
    Column("log"),
)


def item(hello: Hello) -> Item:
    """Return a running daemon as JSON values."""
    projects: list[Item] = [
        {"path": project.path or project.key, "queued": project.queued} for project in hello.projects
    ]
    return {
        "state": "running",
        "version": hello.version,
        "pid": hello.pid,
        "uptime_s": hello.uptime_s,
        "started_at": hello.started_at,
        "retiring": hello.retiring,
        "socket": hello.socket,
        "log": hello.log,
        "busy": codec.dump(hello.busy),
        "env": dict(hello.env),
        "projects": tuple(projects),
        "projects_text": ", ".join(f"{project['path']} ({project['queued']} waiting)" for project in projects),
        "reason": None,
    }


def absent(status: Status) -> Item:
    """Return a daemon that does not answer as JSON values."""
    return {
        "state": status.presence.value,
        "version": None,
        "pid": status.pid,
        "uptime_s": None,
        "started_at": None,
        "retiring": None,
        "socket": str(status.socket),
        "log": str(status.log),
        "busy": None,
        "env": None,
        "projects": (),
        "projects_text": None,
        "reason": status.why or None,
    }


def status(found: Status) -> Document:
    """Make the document of the daemon's state."""
    if found.hello is None and found.presence.value == "stopped":
        return single("daemon", absent(found), FIELDS, text="not running")
    return single("daemon", item(found.hello) if found.hello else absent(found), FIELDS)


def done(action: str, words: str, items: list[Item], *, status: str = "ok") -> Document:
    """Make the document of a start or a stop; its text is one word."""
    return result(action, items, status=status, text=words)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    maybe_text, maybe_whole = schema.maybe(schema.TEXT), schema.maybe(schema.WHOLE)
    one = schema.record(
        state=schema.one_of("running", "stopped", "leaving", "hung", "foreign"),
        version=maybe_text,
        pid=maybe_whole,
        uptime_s=schema.maybe(schema.NUMBER),
        started_at=maybe_text,
        retiring=schema.maybe(schema.YES_NO),
        socket=schema.TEXT,
        log=schema.TEXT,
        busy=schema.of(Busy | None),
        env=schema.maybe(schema.table(schema.TEXT)),
        projects=schema.many(schema.record(path=schema.TEXT, queued=schema.WHOLE)),
        projects_text=maybe_text,
        reason=maybe_text,
    )
    stopped = schema.record(pid=maybe_whole, killed=schema.YES_NO, swept=schema.YES_NO)
    return {
        "daemon": schema.single(one),
        "result/start": schema.result(one),
        "result/stop": schema.result(stopped),
    }
