"""Workspaces: one by its coordinates, many by the resource graph, and the way to their data plane."""

from __future__ import annotations

from collections.abc import Sequence

from aj.azure import arm, graph
from aj.azure.arm import Session, Workspace
from aj.azure.graph import Question
from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.net import http
from aj.net.document import Document
from aj.net.http import Transport, foreign
from aj.net.origin import Origin

TYPE = "microsoft.machinelearningservices/workspaces"


@dataclass(frozen=True)
class Attached:
    """A user-assigned identity of a workspace, by its ARM id as the workspace spells it."""

    id: str
    client_id: str | None
    principal_id: str | None


@dataclass(frozen=True)
class Facts:
    """What a workspace says of itself. `storage_account` is an ARM id; `workspace_id` its own unique id."""

    at: Workspace
    location: str
    discovery_url: str
    workspace_id: str | None
    storage_account: str | None
    identities: tuple[Attached, ...]


@dataclass(frozen=True)
class Listed:
    """A workspace as a list shows it."""

    at: Workspace
    location: str


def get(session: Session, workspace: Workspace) -> Facts:
    """Read one workspace. Raises NotFound."""
    doing = f"read workspace {workspace}"
    found = arm.in_workspace(session, workspace, doing=doing, limit=http.QUICK).get()
    users = found.inner("identity", "userAssignedIdentities")
    return Facts(
        workspace,
        found.need_text("location"),
        found.need_text("properties", "discoveryUrl"),
        found.text("properties", "workspaceId"),
        found.text("properties", "storageAccount"),
        tuple(Attached(name, users.text(name, "clientId"), users.text(name, "principalId")) for name in users.values),
    )


def find(
    session: Session, subscriptions: Sequence[str], *, name: str | None = None, group: str | None = None
) -> tuple[Listed, ...]:
    """List the workspaces of subscriptions, those of a name or group alone when given, compared without case."""
    doing = "list workspaces" if name is None else f"look for workspace {name}"
    question = Question(TYPE, ("name", "location"), name=name, group=group)
    return graph.ask(session, question, subscriptions, _listed, doing=doing)


def data_plane(session: Session, facts: Facts) -> tuple[Transport, Origin]:
    """Return the transport to a workspace's data plane, and where that is.

    Raises RemoteError when the workspace names a host that this cloud does not have: its token stays here.
    """
    try:
        origin = Origin.of_url(facts.discovery_url)
    except ValueError as error:
        raise RemoteError(f"workspace {facts.at} gives no usable discovery address: {error}") from None
    allowed = session.cloud.data_plane
    if not any(known.covers(origin) for known in allowed):
        raise foreign(origin.netloc, " or ".join(known.netloc for known in allowed))
    return session.signed(session.cloud.ml_scope, origin), origin


def _listed(row: Document) -> Listed:
    return Listed(Workspace.of_id(row.need_text("id")), row.text("location") or "")
