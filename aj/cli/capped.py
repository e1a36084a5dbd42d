"""Whom a cap is about: everything this user runs, or one session of a coding agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from aj.base import agents
from aj.base.errors import UserError
from aj.cli.declare import Option
from aj.model import money
from aj.model.spend import Per

if TYPE_CHECKING:
    from aj.cli.context import Context

PERS = tuple(per.value for per in Per)
OfSession: TypeAlias = Annotated[
    str | None,
    Option("--agent-session", "of this agent session alone, or of the one that is named", "ID", bare=True),
]


def session(word: str | None, ctx: Context) -> str | None:
    """Return the session that is meant, as it is kept with its jobs; None for everything. Raises UserError."""
    if not word:
        return mine(ctx) if word == "" else None
    found = agents.session_named(word)
    if not found:
        raise UserError(f"`{word}` names no session", hint="`aj job list` shows those of jobs", code="no-session")
    return found


def mine(ctx: Context) -> str:
    """Return the agent session of the caller. Raises UserError when there is none."""
    if ctx.caller is None:
        raise UserError(
            "this is no session of a coding agent",
            hint="name one: `--agent-session=ID`, or set AJ_SESSION",
            code="no-session",
        )
    return ctx.caller.session


def limit(word: str) -> int:
    """Read the limit of a cap, in whole US dollars. Raises ValueError."""
    digits = word.removeprefix("$")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 9 and 0 < int(digits) <= money.LARGEST):
        raise ValueError(f"`{word}` is not a whole number of US dollars from 1 to {money.LARGEST}")
    return int(digits)
