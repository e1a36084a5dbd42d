"""Datastores: the blob containers that a workspace knows by a name of its own."""

from __future__ import annotations

from dataclasses import field

from aj.azure import arm
from aj.azure.arm import Session, Workspace
from aj.base import redact
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.net import document
from aj.net.document import Document

CODE = "workspaceblobstore"  # the one that every workspace has


@dataclass(frozen=True)
class Datastore:
    """One datastore. Account and container are None for a kind that is not a blob container."""

    name: str
    kind: str
    account: str | None
    container: str | None
    endpoint: str | None
    protocol: str | None
    credentials: str | None
    is_default: bool


@dataclass(frozen=True)
class Secret:
    """What opens a datastore: an account key, or a signature."""

    kind: str
    value: str = field(repr=False)


def list_all(session: Session, workspace: Workspace) -> tuple[Datastore, ...]:
    """List the datastores of a workspace."""
    doing = f"list the datastores of workspace {workspace}"
    return arm.in_workspace(session, workspace, "datastores", doing=doing).read(_made).rows


def find(session: Session, workspace: Workspace, name: str) -> Datastore | None:
    """Read one datastore; None when there is none of that name."""
    call = arm.in_workspace(session, workspace, "datastores", name, doing=f"read datastore {name}")
    try:
        return _made(call.get())
    except NotFound:
        return None


def put(session: Session, workspace: Workspace, name: str, *, account: str, container: str, endpoint: str) -> Datastore:
    """Register a container without credentials: who mounts it needs a right of his own there."""
    call = arm.in_workspace(
        session, workspace, "datastores", name, doing=f"register container {container} of account {account}"
    )
    body: dict[str, Json] = {
        "datastoreType": "AzureBlob",
        "accountName": account,
        "containerName": container,
        "endpoint": endpoint,
        "protocol": "https",
        "credentials": {"credentialsType": "None"},
    }
    return _made(call.put_same({"properties": body}))


def secret(session: Session, workspace: Workspace, name: str) -> Secret:
    """Ask for the secret of a datastore. It is masked everywhere from then on. Raises Refused without the right."""
    call = arm.in_workspace(
        session, workspace, "datastores", name, "listSecrets", doing=f"read the secret of datastore {name}"
    )
    request = call.request("POST")
    found = document.of(session.manager.send(request), request)
    kind = found.need_text("secretsType")
    value = found.need_text("sasToken" if kind.lower() == "sas" else "key")
    redact.hide(value)
    return Secret(kind, value)


def _made(row: Document) -> Datastore:
    own = row.inner("properties")
    return Datastore(
        row.need_text("name"),
        own.text("datastoreType") or "",
        own.text("accountName"),
        own.text("containerName"),
        own.text("endpoint"),
        own.text("protocol"),
        own.text("credentials", "credentialsType"),
        own.flag("isDefault") or False,
    )
