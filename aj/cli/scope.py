"""Whose submissions a list shows: under a coding agent those of its own session, unless the line says otherwise.

A courtesy and no fence: `--session` and `--agent` choose another scope, `--session all` or `--all-projects`
lift it. A command declares the two options, asks `of` once, sieves by `Scope.takes`, and tells at the end:

    agent: scopes.Agent = None
    session: scopes.Session = None
    ...
    scope = scopes.of(ctx, opts.agent, opts.session)
    found = [one for one in every if scope.takes(one.agent, one.session)]
    ctx.screen.show(view.them(found, scope=scope))
    scopes.tell(ctx, scope, outside=not found and bool(every))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.cli.declare import Option, filled
from aj.view import scope as view
from aj.view.scope import Scope

if TYPE_CHECKING:
    from aj.cli.context import Context

ALL = "all"
Agent = Annotated[
    str | None, Option("--agent", "made by this coding agent; `all`: by whomever", "NAME", filled, values="caller")
]
Session = Annotated[
    str | None,
    Option("--session", "made in this session of an agent; `all`: in any or none", "ID", filled, values="session"),
]


def of(ctx: Context, agent: str | None, session: str | None, *, every_project: bool = False) -> Scope:
    """Return the scope that the words of a line ask for; without any, the caller's own session."""
    project = None if every_project else ctx.key
    if agent is None and session is None and not every_project:
        own = ctx.caller
        return Scope(project, session=own.session, is_own=True) if own else Scope(project)
    from aj.base import agents

    name = agents.named(agent) if agent is not None else ALL
    said = agents.session_named(session) if session is not None else ALL
    return Scope(project, agent=None if name == ALL else name, session=None if said == ALL else said)


def tell(ctx: Context, scope: Scope, *, outside: bool) -> None:
    """Say on stderr what the scope leaves out; `outside`: nothing is in it, and something is not."""
    words = view.words(scope, outside=outside)
    if words:
        ctx.screen.note(words)
