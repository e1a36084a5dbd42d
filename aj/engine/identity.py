"""Who is signed in: from which source, for whom, and until when there is a token for each scope."""

from __future__ import annotations

from aj.azure import identity
from aj.azure.arm import Session
from aj.base.clock import rfc3339
from aj.base.errors import AjError, RemoteError
from aj.engine.visit import Visit
from aj.net.clouds import BLOB_SCOPE
from aj.net.token import Person
from aj.wire.azure import SignIn, TokenFacts


def status(visit: Visit, subscription: str | None) -> SignIn:
    """Tell who is signed in; `subscription` is that of the environment. Raises AuthError when nobody is."""
    session, workspace = visit.session, visit.chosen.workspace
    person = _person(session)
    scopes = (session.cloud.arm_scope, session.cloud.ml_scope, BLOB_SCOPE)
    facts = tuple(_facts(session, scope) for scope in scopes)
    return SignIn(
        user=person.name,
        object_id=person.object_id,
        tenant=person.tenant or session.tenant,
        source=facts[0].source or "",
        cloud=session.cloud.name,
        subscription=workspace.subscription or subscription,
        workspace=workspace.name,
        tokens=facts,
    )


def _person(session: Session) -> Person:
    try:
        return identity.whoami(session)
    except RemoteError as error:
        if error.code != "opaque-token":
            raise
        return Person(None, None, None)  # a token that does not tell is good all the same


def _facts(session: Session, scope: str) -> TokenFacts:
    """Take a token for a scope. One that a right is missing for does not hide the others."""
    try:
        found = session.tokens.get(scope, tenant=session.tenant)
    except AjError as error:
        return TokenFacts(scope, problem=error.message)
    return TokenFacts(scope, found.source, rfc3339(found.expires_at))
