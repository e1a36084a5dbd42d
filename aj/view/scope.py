"""What a list is limited to, and how the session of a submission is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.view import schema
from aj.view.document import Column

if TYPE_CHECKING:
    from aj.view.document import Document, Item
    from aj.view.schema import Schema

COLUMN = Column("session", "session_text", flexible=True)


@dataclass(frozen=True)
class Scope:
    """What a list is limited to; None where it is not. `is_own`: to the session that asks, because it asks."""

    project: str | None = None
    workspace: str | None = None
    agent: str | None = None
    session: str | None = None
    is_own: bool = False

    @property
    def widen(self) -> str | None:
        """The words that lift what limits it to an agent or a session; None where nothing does."""
        return "--session all" if self.session is not None else "--agent all" if self.agent is not None else None

    def takes(self, agent: object, session: object) -> bool:
        """Whether what this agent made in this session belongs to it."""
        return self.agent in (None, agent) and self.session in (None, session)

    @property
    def item(self) -> Item:
        """The scope as JSON values."""
        return {
            "project": self.project,
            "workspace": self.workspace,
            "agent": self.agent,
            "session": self.session,
            "own": self.is_own,
            "widen": self.widen,
        }


def item_schema() -> Schema:
    """Return the schema of a scope."""
    texts = ("project", "workspace", "agent", "session", "widen")
    return schema.record(**dict.fromkeys(texts, schema.maybe(schema.TEXT)), own=schema.YES_NO)


def words(scope: Scope, *, outside: bool) -> str | None:
    """Say what a list leaves out because of agents; `outside` tells that it is empty and others are not in it."""
    others = "there are others outside it" if outside else ""
    if scope.is_own:
        told = f"only of this session, {scope.session}" + (f"; {others}" if others else "")
        return f"{told}: `{scope.widen}` for all"
    return f"{others}: `{scope.widen}`" if others else None


def session_text(session: object, title: object) -> str | None:
    """Write a session in one column: its title, else its id."""
    return str(title or session) if session else None


def session_words(session: object, title: object) -> str | None:
    """Write a session where there is room: its title with its id."""
    return f"{title} ({session})" if session and title else session_text(session, title)


def with_sessions(made: Document, scope: Scope, title: str) -> Document:
    """Show the session of each row before the last column, where any has one and not all are the asking one.

    `title` is the key under which a row has the session's title.
    """
    if scope.is_own or not any(row.get("session") for row in made.rows):
        return made
    rows = [{**row, "session_text": session_text(row.get("session"), row.get(title))} for row in made.rows]
    columns: Sequence[Column] = (*made.columns[:-1], COLUMN, *made.columns[-1:])
    return replace(made, rows=rows, columns=columns)
