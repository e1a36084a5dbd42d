"""Resources of Azure as they cross the socket: workspaces, and what they and their subscriptions hold."""

from __future__ import annotations

from aj.base.noun import dataclass
from aj.wire.azure import Told


@dataclass(frozen=True)
class WorkspaceRow:
    """A workspace. `is_current` when the settings choose it."""

    name: str
    resource_group: str
    subscription: str
    region: str
    is_current: bool = False


@dataclass(frozen=True)
class WorkspaceList:
    """Workspaces in the order of their names."""

    rows: tuple[WorkspaceRow, ...]
    told: Told


@dataclass(frozen=True)
class WorkspaceAnswer:
    """One workspace; `storage_account` is a name, `identities` are ARM ids that a job there may run as."""

    workspace: WorkspaceRow
    workspace_id: str | None
    storage_account: str | None
    discovery_url: str
    identities: tuple[str, ...] = ()


@dataclass(frozen=True)
class DatastoreRow:
    """A datastore. `account` and `container` are None for a kind that is no blob container."""

    name: str
    kind: str
    account: str | None
    container: str | None
    credentials: str | None
    is_default: bool = False


@dataclass(frozen=True)
class DatastoreList:
    """The datastores of one workspace."""

    workspace: str
    rows: tuple[DatastoreRow, ...]
    told: Told


@dataclass(frozen=True)
class EnvironmentRow:
    """An environment by its name, with its newest version."""

    name: str
    latest: str | None
    is_archived: bool = False


@dataclass(frozen=True)
class EnvironmentList:
    """The environments of one workspace."""

    workspace: str
    rows: tuple[EnvironmentRow, ...]
    told: Told


@dataclass(frozen=True)
class VersionRow:
    """A version of an environment. `image` is None for one that is built from a recipe."""

    id: str
    version: str
    image: str | None
    system: str | None
    is_archived: bool = False


@dataclass(frozen=True)
class EnvironmentAnswer:
    """The versions of one environment, as the workspace lists them; `left_out` counts those beyond a limit."""

    name: str
    workspace: str
    versions: tuple[VersionRow, ...]
    left_out: int = 0


@dataclass(frozen=True)
class AccountRow:
    """A storage account. `sku` is the name of its redundancy."""

    id: str
    name: str
    resource_group: str
    subscription: str
    region: str
    kind: str
    sku: str


@dataclass(frozen=True)
class AccountList:
    """Storage accounts."""

    rows: tuple[AccountRow, ...]
    told: Told


@dataclass(frozen=True)
class IdentityRow:
    """A user-assigned identity."""

    id: str
    name: str
    resource_group: str
    subscription: str
    region: str
    client_id: str | None
    principal_id: str | None


@dataclass(frozen=True)
class IdentityList:
    """User-assigned identities."""

    rows: tuple[IdentityRow, ...]
    told: Told
