"""Resources of Azure, read for whoever asks: workspaces, and what they and their subscriptions hold.

What is listed is kept with its age; one thing that is named is always asked for. The names of each list are
kept as well, for the completion of a half-typed command.
"""

from __future__ import annotations

from collections.abc import Iterable

from aj.azure import accounts, datastores, environments, identity, workspaces
from aj.azure.arm import Session, Workspace
from aj.base import text
from aj.base.clock import Clock
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.engine.visit import Visit
from aj.store import cache
from aj.store.layout import Layout
from aj.wire.resources import (
    AccountList,
    AccountRow,
    DatastoreList,
    DatastoreRow,
    EnvironmentAnswer,
    EnvironmentList,
    EnvironmentRow,
    IdentityList,
    IdentityRow,
    VersionRow,
    WorkspaceAnswer,
    WorkspaceList,
    WorkspaceRow,
)


@dataclass(frozen=True)
class Workspaces:
    """What is kept of workspaces, and what was said on the way."""

    rows: tuple[WorkspaceRow, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Accounts:
    """What is kept of storage accounts, and what was said on the way."""

    rows: tuple[AccountRow, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Identities:
    """What is kept of identities, and what was said on the way."""

    rows: tuple[IdentityRow, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Datastores:
    """What is kept of the datastores of a workspace."""

    rows: tuple[DatastoreRow, ...] = ()


@dataclass(frozen=True)
class Environments:
    """What is kept of the environments of a workspace."""

    rows: tuple[EnvironmentRow, ...] = ()


# Workspaces


def workspace_list(visit: Visit) -> WorkspaceList:
    """List every workspace that this user sees. Raises AuthError, RemoteError."""
    held = visit.kept(Workspaces, "workspaces", lambda: _workspaces(visit))
    current = visit.chosen.workspace.workspace
    rows = tuple(_marked(row, current) for row in held.value.rows)
    _remember(visit, "workspaces", (row.name for row in rows))
    return WorkspaceList(rows, visit.told(held, failures=(), warnings=held.value.notices))


def _workspaces(visit: Visit) -> Workspaces:
    places, subscriptions = visit.places()
    found = sorted(workspaces.find(visit.session, subscriptions), key=lambda one: (one.at.name.casefold(), one.at.id))
    return Workspaces(tuple(_workspace(one.at, one.location) for one in found), tuple(places.notices))


def workspace_show(session: Session, workspace: Workspace, current: Workspace | None) -> WorkspaceAnswer:
    """Read one workspace. Raises NotFound."""
    facts = workspaces.get(session, workspace)
    return WorkspaceAnswer(
        _marked(_workspace(workspace, facts.location), current),
        facts.workspace_id,
        facts.storage_account.rpartition("/")[2] if facts.storage_account else None,
        facts.discovery_url,
        tuple(attached.id for attached in facts.identities),
    )


def _workspace(at: Workspace, region: str) -> WorkspaceRow:
    return WorkspaceRow(at.name, at.group, at.subscription, region)


def _marked(row: WorkspaceRow, current: Workspace | None) -> WorkspaceRow:
    mine = (
        current is not None
        and current.id.lower() == Workspace(row.subscription, row.resource_group, row.name).id.lower()
    )
    return WorkspaceRow(row.name, row.resource_group, row.subscription, row.region, mine)


# Datastores


def datastore_list(visit: Visit, workspace: Workspace) -> DatastoreList:
    """List the datastores of a workspace. Raises AuthError, RemoteError, NotFound without the workspace."""

    def fetch() -> Datastores:
        return Datastores(tuple(_datastore(one) for one in datastores.list_all(visit.session, workspace)))

    held = visit.kept(Datastores, f"datastores {workspace.id}", fetch)
    _remember(visit, "datastores", (row.name for row in held.value.rows))
    return DatastoreList(str(workspace), held.value.rows, visit.told(held, failures=(), warnings=()))


def datastore_show(session: Session, workspace: Workspace, name: str) -> DatastoreRow:
    """Read one datastore. Raises NotFound with the nearest name."""
    found = datastores.find(session, workspace, name)
    if found is None:
        every = [one.name for one in datastores.list_all(session, workspace)]
        raise _missing("datastore", name, workspace, every, "`aj ds list`")
    return _datastore(found)


def _datastore(found: datastores.Datastore) -> DatastoreRow:
    return DatastoreRow(found.name, found.kind, found.account, found.container, found.credentials, found.is_default)


# Environments


def environment_list(visit: Visit, workspace: Workspace) -> EnvironmentList:
    """List the environments of a workspace. Raises AuthError, RemoteError, NotFound without the workspace."""

    def fetch() -> Environments:
        found = environments.list_all(visit.session, workspace)
        return Environments(tuple(EnvironmentRow(one.name, one.latest, one.is_archived) for one in found))

    held = visit.kept(Environments, f"environments {workspace.id}", fetch)
    _remember(visit, "environments", (row.name for row in held.value.rows))
    return EnvironmentList(str(workspace), held.value.rows, visit.told(held, failures=(), warnings=()))


def environment_show(session: Session, workspace: Workspace, name: str, *, limit: int) -> EnvironmentAnswer:
    """Read the versions of an environment, `limit` of them (0 means all). Raises NotFound with the nearest name."""
    try:
        found = environments.versions(session, workspace, name)
    except NotFound:
        found = ()
    if not found:
        every = [one.name for one in environments.list_all(session, workspace)]
        raise _missing("environment", name, workspace, every, "`aj env list`")
    rows = tuple(VersionRow(one.id, one.name, one.image, one.system, one.is_archived) for one in found)
    shown = rows[:limit] if limit else rows
    return EnvironmentAnswer(name, str(workspace), shown, len(rows) - len(shown))


def _missing(noun: str, name: str, workspace: Workspace, every: Iterable[str], listing: str) -> NotFound:
    near = text.nearest(name, list(every))
    hint = f"`{near}` is the nearest name" if near else listing
    return NotFound(f"workspace {workspace} has no {noun} {name}", hint=hint, code=f"no-{noun}")


# Subscriptions


def account_list(visit: Visit) -> AccountList:
    """List the storage accounts that this user sees. Raises AuthError, RemoteError."""
    held = visit.kept(Accounts, "accounts", lambda: _accounts(visit))
    _remember(visit, "accounts", (row.name for row in held.value.rows))
    return AccountList(held.value.rows, visit.told(held, failures=(), warnings=held.value.notices))


def _accounts(visit: Visit) -> Accounts:
    places, subscriptions = visit.places()
    found = sorted(accounts.find(visit.session, subscriptions), key=lambda one: (one.name, one.id))
    rows = (AccountRow(one.id, one.name, one.group, one.subscription, one.location, one.kind, one.sku) for one in found)
    return Accounts(tuple(rows), tuple(places.notices))


def identity_list(visit: Visit) -> IdentityList:
    """List the user-assigned identities that this user sees. Raises AuthError, RemoteError."""
    held = visit.kept(Identities, "identities", lambda: _identities(visit))
    _remember(visit, "identities", (row.name for row in held.value.rows))
    return IdentityList(held.value.rows, visit.told(held, failures=(), warnings=held.value.notices))


def _identities(visit: Visit) -> Identities:
    places, subscriptions = visit.places()
    found = sorted(identity.find(visit.session, subscriptions), key=lambda one: (one.name.casefold(), one.id))
    rows = (
        IdentityRow(one.id, one.name, one.group, one.subscription, one.location, one.client_id, one.principal_id)
        for one in found
    )
    return Identities(tuple(rows), tuple(places.notices))


def remember(layout: Layout, clock: Clock, noun: str, names: Iterable[str]) -> None:
    """Keep the names of a list where completion finds them without asking anybody."""
    cache.put(layout.answers / "names" / f"{noun}.json", tuple(names), clock=clock)


def _remember(visit: Visit, noun: str, names: Iterable[str]) -> None:
    remember(visit.layout, visit.session.clock, noun, names)
