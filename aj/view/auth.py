"""Who is signed in, and for which scopes there is a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aj.view import schema
from aj.view.document import Column, Form, single
from aj.wire import codec

if TYPE_CHECKING:
    from aj.view.document import Document
    from aj.view.schema import Schema
    from aj.wire.azure import SignIn, TokenFacts

FIELDS = (
    Column("logged in", "logged_in"),
    Column("user"),
    Column("tenant", form=Form.ID),
    Column("object id", "object_id", Form.ID),
    Column("credential", "source"),
    Column("cloud"),
    Column("subscription", form=Form.ID),
    Column("workspace", form=Form.ID),
)


def status(found: SignIn) -> Document:
    """Make the document of a sign-in."""
    whole = codec.fields(found)
    return single("auth", {"logged_in": True, **whole}, FIELDS, after=[_token(one) for one in found.tokens])


def _token(facts: TokenFacts) -> str:
    if facts.problem is not None:
        return f"{facts.scope}  none: {facts.problem}"
    return f"{facts.scope}  until {facts.expires_at}"


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    from aj.wire.azure import SignIn

    fields = schema.fields(SignIn)
    return {"auth": schema.single(schema.record(logged_in=schema.YES_NO, **fields))}
