"""Identities: who is signed in here, and the user-assigned identities that a job may run as."""

from __future__ import annotations

from collections.abc import Sequence

from aj.azure import graph
from aj.azure.arm import Session
from aj.azure.graph import Question
from aj.base.noun import dataclass
from aj.net import token
from aj.net.clouds import BLOB_SCOPE
from aj.net.document import Document
from aj.net.token import Person

TYPE = "microsoft.managedidentity/userassignedidentities"


@dataclass(frozen=True)
class SignedIn:
    """A token that this user has: for which scope, from where, for whom, and until when (seconds since the epoch)."""

    scope: str
    source: str
    person: Person
    expires_at: float


@dataclass(frozen=True)
class Identity:
    """One user-assigned identity."""

    id: str
    name: str
    subscription: str
    group: str
    location: str
    client_id: str | None
    principal_id: str | None


def whoami(session: Session) -> Person:
    """Return who the next request will come from. Raises AuthError."""
    return token.person(session.tokens.get(session.cloud.arm_scope, tenant=session.tenant))


def signed_in(session: Session) -> tuple[SignedIn, ...]:
    """Take a token for each scope there is and tell about it, never the token itself. Raises AuthError."""
    scopes = (session.cloud.arm_scope, session.cloud.ml_scope, BLOB_SCOPE)
    tokens = [(scope, session.tokens.get(scope, tenant=session.tenant)) for scope in scopes]
    return tuple(SignedIn(scope, found.source, token.person(found), found.expires_at) for scope, found in tokens)


def find(session: Session, subscriptions: Sequence[str], *, name: str | None = None) -> tuple[Identity, ...]:
    """List the user-assigned identities of subscriptions, those of a name alone when given."""
    fields = ("name", "resourceGroup", "subscriptionId", "location", "properties")
    question = Question(TYPE, fields, name=name)
    return graph.ask(session, question, subscriptions, _made, doing="list identities")


def _made(row: Document) -> Identity:
    return Identity(
        row.need_text("id"),
        row.need_text("name"),
        row.text("subscriptionId") or "",
        row.text("resourceGroup") or "",
        row.text("location") or "",
        row.text("properties", "clientId"),
        row.text("properties", "principalId"),
    )
