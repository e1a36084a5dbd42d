"""Tickets as rows: what the queue holds, and the whole story of one ticket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.model.code import CodeRef
from aj.model.ticket import Fault, Mode, Outcome, Submitted, TicketState
from aj.view import schema
from aj.view.document import Column, Form, listing, single
from aj.view.scope import session_words
from aj.wire import codec

if TYPE_CHECKING:
    from aj.model.ticket import Ticket
    from aj.view.document import Document, Item
    from aj.view.schema import Schema

COLUMNS = (
    Column("ticket", form=Form.ID),
    Column("mode"),
    Column("state", form=Form.STATE),
    Column("outcome", form=Form.STATE),
    Column("age", "created_at", Form.AGE),
    Column("name", form=Form.ID),
    Column("detail", flexible=True),
)
FIELDS = (
    *COLUMNS[:4],
    Column("id", form=Form.ID),
    Column("name", form=Form.ID),
    Column("service"),
    Column("template"),
    Column("created", "created_at", Form.TIME),
    Column("started", "started_at", Form.TIME),
    Column("finished", "finished_at", Form.TIME),
    Column("detail"),
    Column("azure_name", "submission.azure_name"),
    Column("portal", "submission.portal_url"),
    Column("note", "submission.note"),
    Column("error", "error.message"),
    Column("hint", "error.hint"),
    Column("retried_from"),
    Column("retried_as"),
    Column("environment", "env_names"),
    Column("agent"),
    Column("session", "session_text"),
)


def item(ticket: Ticket, project: str | None = None) -> Item:
    """Return a ticket as JSON values, without its request."""
    return {
        "ticket": ticket.ticket,
        "id": ticket.id,
        "mode": ticket.mode.value,
        "state": ticket.state.value,
        "outcome": ticket.outcome.value if ticket.outcome else None,
        "name": ticket.name,
        "service": ticket.service,
        "template": ticket.template,
        "created_at": ticket.created_at,
        "started_at": ticket.started_at,
        "finished_at": ticket.finished_at,
        "detail": ticket.detail or (ticket.error.message if ticket.error else None),
        "submission": codec.dump(ticket.result),
        "error": codec.dump(ticket.error),
        "code": codec.dump(ticket.code),
        "retried_from": ticket.retried_from,
        "retried_as": ticket.retried_as,
        "env_names": ticket.env_names,
        "agent": ticket.agent,
        "session": ticket.session,
        "session_title": ticket.session_title,
        "project": project,
    }


def row(ticket: Ticket, project: str | None = None) -> Item:
    """Return a ticket as its table shows it."""
    session = session_words(ticket.session, ticket.session_title)
    return {**item(ticket, project), "session_text": session}


def tickets(
    found: Sequence[tuple[Ticket, str | None]],
    *,
    with_project: bool = False,
    left_out: int = 0,
    scope: str | None = None,
) -> Document:
    """Make the list of tickets, each with its project; `left_out` counts those beyond the limit."""
    columns = (*COLUMNS[:-1], Column("project", form=Form.ID), COLUMNS[-1]) if with_project else COLUMNS
    footer = [f"{left_out} more: `aj queue list -n 0` shows all"] if left_out else []
    return listing(
        "queue.list",
        [item(ticket, project) for ticket, project in found],
        columns,
        noun="tickets",
        ids="ticket",
        truncated=left_out > 0,
        extra={"scope": scope},
        footer=footer,
    )


def entry(ticket: Ticket, project: str | None = None) -> Document:
    """Make the document of one ticket."""
    said = ticket.error.details.get("last_lines") if ticket.error else None
    after = tuple(map(str, said)) if isinstance(said, list | tuple) else ()
    made = single("queue.entry", item(ticket, project), FIELDS, ids="ticket", after=after)
    return replace(made, rows=[row(ticket, project)])


def ticket_schema() -> Schema:
    """Return the schema of one ticket."""
    return schema.record(
        ticket=schema.TEXT,
        id=schema.TEXT,
        mode=schema.of(Mode),
        state=schema.of(TicketState),
        outcome=schema.maybe(schema.of(Outcome)),
        name=schema.TEXT,
        service=schema.TEXT,
        template=schema.TEXT,
        created_at=schema.TEXT,
        started_at=schema.maybe(schema.TEXT),
        finished_at=schema.maybe(schema.TEXT),
        detail=schema.maybe(schema.TEXT),
        submission=schema.of(Submitted | None),
        error=schema.of(Fault | None),
        code=schema.of(CodeRef | None),
        retried_from=schema.maybe(schema.TEXT),
        retried_as=schema.maybe(schema.TEXT),
        env_names=schema.NAMES,
        agent=schema.maybe(schema.TEXT),
        session=schema.maybe(schema.TEXT),
        session_title=schema.maybe(schema.TEXT),
        project=schema.maybe(schema.TEXT),
    )


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    entry = ticket_schema()
    return {
        "queue.list": schema.listing(entry, scope=schema.maybe(schema.TEXT)),
        "queue.entry": schema.single(entry),
    }
