"""One small Azure on loopback: a Resource Manager, a data plane, tokens, and a session of ours that reaches them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from aj.azure.arm import Session, Workspace
from aj.base.clock import Clock
from aj.base.settings import Settings
from aj.net import clouds, http
from aj.net.clouds import Cloud
from aj.net.token import Token
from tests.servers.arm import Arm, Checked, DataPlane
from tests.servers.authority import jwt
from tests.servers.loopback import Loopback, serving

TENANT = "aaaaaaaa-0000-0000-0000-00000000000a"
ONE = "aaaaaaaa-0000-0000-0000-000000000001"
TWO = "aaaaaaaa-0000-0000-0000-000000000002"
ML_SCOPE = "https://ml.azure.test/.default"
WORKSPACE = Workspace(ONE, "rg-one", "ws-one")


@dataclass
class Issuer:
    """A source of tokens that the servers know of; what is dropped is good no more."""

    known: dict[str, str]
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    kept: dict[str, Token] = field(default_factory=dict)
    dropped: list[Token] = field(default_factory=list)
    person: str = "99999999-0000-0000-0000-000000000001"

    def get(self, scope: str, *, tenant: str | None = None, claims: str | None = None) -> Token:
        if claims or scope not in self.kept:
            self.asked.append((scope, tenant, claims))
            value = jwt(len(self.asked), scope, tenant or TENANT, self.person)
            self.known[value] = scope
            self.kept[scope] = Token(value, 4_000_000_000.0, "environment")
        return self.kept[scope]

    def drop(self, token: Token) -> None:
        self.dropped.append(token)
        self.kept = {scope: kept for scope, kept in self.kept.items() if kept != token}

    def spoil(self) -> None:
        """Let every token that is out there be good no more, unknown to who holds it."""
        self.known.clear()


@dataclass(frozen=True)
class SmallAzure:
    """The servers by what they know (`arm`, `plane`) and by what happens to them (`arm_server`, `plane_server`)."""

    arm: Arm
    plane: DataPlane
    arm_server: Loopback
    plane_server: Loopback
    issuer: Issuer
    cloud: Cloud
    session: Session

    def add_workspace(self, at: Workspace = WORKSPACE, *, location: str = "northeurope") -> Workspace:
        """Make a workspace, to be read by its coordinates and found in the graph."""
        resource = self.arm.add(
            at.id,
            {
                "location": location,
                "identity": {
                    "type": "UserAssigned",
                    "userAssignedIdentities": {
                        f"/subscriptions/{ONE}/resourceGroups/rg-one/providers/Microsoft.ManagedIdentity"
                        "/userAssignedIdentities/uai-one": {
                            "clientId": "cccccccc-0000-0000-0000-000000000001",
                            "principalId": "dddddddd-0000-0000-0000-000000000001",
                        }
                    },
                },
                "properties": {
                    "discoveryUrl": f"{self.plane.url}/discovery",
                    "workspaceId": "eeeeeeee-0000-0000-0000-000000000001",
                    "storageAccount": f"/subscriptions/{ONE}/resourceGroups/rg-one/providers"
                    "/Microsoft.Storage/storageAccounts/saone",
                },
            },
            "Workspace",
        )
        self.arm.rows.append(
            {
                "type": "microsoft.machinelearningservices/workspaces",
                "id": resource["id"],
                "name": at.name,
                "location": location,
                "resourceGroup": at.group,
                "subscriptionId": at.subscription,
            }
        )
        return at

    def broken(self) -> list[str]:
        """Rules that a request broke."""
        return self.arm.broken + self.plane.broken


@contextlib.contextmanager
def running(settings: Settings, clock: Clock) -> Iterator[SmallAzure]:
    """Run a small Azure for the length of a block; a request that broke a rule fails it at the end."""
    tokens: dict[str, str] = {}
    arm, plane = Arm(tokens=tokens), DataPlane(tokens=tokens)
    with (
        serving(arm.answer) as arm_server,
        serving(plane.answer) as plane_server,
        http.connect(settings, clock) as pool,
    ):
        for checked, server in ((arm, arm_server), (plane, plane_server)):
            _place(checked, server)
        cloud = clouds.find("small", {"small": table(arm_server.url, plane_server.url)})
        arm.scope, plane.scope = cloud.arm_scope, cloud.ml_scope
        issuer = Issuer(tokens)
        session = Session(pool, cloud, issuer, clock, TENANT)
        azure = SmallAzure(arm, plane, arm_server, plane_server, issuer, cloud, session)
        yield azure
    if faults := azure.broken() + [f"not used: {words}" for words in arm_server.left() + plane_server.left()]:
        raise AssertionError("\n".join(faults))


def table(arm: str, plane: str, authority: str = "https://127.0.0.1:1") -> dict[str, object]:
    """The table of a cloud in `aj.toml` that leads to servers of the test."""
    return {
        "authority": authority,
        "arm": arm,
        "ml_scope": ML_SCOPE,
        "storage_suffix": "core.azure.test",
        "data_plane_hosts": [plane],
        "blob_endpoint": "http://127.0.0.1:10000/{account}",
    }


def _place(checked: Checked, server: Loopback) -> None:
    checked.url = server.url
