"""A cloud for the engine: its rooms over a small Azure, with the settings of a test's own project."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from aj.azure.arm import Session, Workspace
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.engine.cloud import Cloud
from aj.net.token import Token
from aj.store.config import Config
from tests.conftest import Home, MovedClock
from tests.servers.azure import ONE, TWO, WORKSPACE, SmallAzure

VCS = "/providers/Microsoft.MachineLearningServices/virtualclusters"
ROW = "Microsoft.MachineLearningServices/virtualclusters"
IMAGE = "mcr.example/torch:2"


@dataclass
class Away:
    """A source of tokens that has none."""

    error: Exception

    def get(self, scope: str, *, tenant: str | None = None, claims: str | None = None) -> Token:
        raise self.error

    def drop(self, token: Token) -> None:
        """Nothing is kept."""


@dataclass
class Sky:
    """A small Azure, a project, and the cloud that the daemon would ask."""

    azure: SmallAzure
    home: Home
    clock: MovedClock
    project: Project
    session: Session
    opened: list[str | None] = field(default_factory=list)

    @classmethod
    def over(cls, azure: SmallAzure, home: Home, clock: MovedClock) -> Sky:
        sky = cls(azure, home, clock, home.project(), azure.session)
        azure.arm.page_rows = 50
        subscribe(azure, ONE)
        return sky

    @property
    def cloud(self) -> Cloud:
        """A new daemon's view: nothing is remembered but what is on disk."""
        return Cloud(self._open, self.home.layout, self.home.settings, self.clock)

    def _open(self, chosen: Config, tenant: str | None) -> Session:
        self.opened.append(tenant)
        return replace(self.session, tenant=tenant or self.session.tenant)

    def settings(self, text: str) -> None:
        (self.project.directory / "aj.toml").write_text(text)

    def away(self, error: Exception) -> None:
        """From now on nobody signs in."""
        self.session = replace(self.azure.session, tokens=Away(error))

    def environment(self, **values: str) -> None:
        """Settings of the daemon's environment."""
        self.home = replace(self.home, settings=Settings({**self.home.settings.env, **values}))

    def workspace(self, at: Workspace = WORKSPACE) -> Workspace:
        return self.azure.add_workspace(at)

    def job(self, name: str, status: str = "Running", *, at: Workspace = WORKSPACE, **more: object) -> dict:
        """Keep a job; the newest is the last one made. Words for times count in seconds from the clock's now."""
        return add_job(self.azure, name, status, at=at, **more)

    def targets(self, word: str = "") -> list[str]:
        """The requests to the Resource Manager that hold a word."""
        return [target for target in self.azure.arm_server.targets() if word in target]


def subscribe(azure: SmallAzure, subscription: str) -> None:
    azure.arm.subscriptions.append(
        {
            "id": f"/subscriptions/{subscription}",
            "subscriptionId": subscription,
            "displayName": f"sub {subscription[-1]}",
            "tenantId": azure.session.tenant,
            "state": "Enabled",
        }
    )


def add_job(
    azure: SmallAzure,
    name: str,
    status: str = "Running",
    *,
    at: Workspace = WORKSPACE,
    created: str = "2027-01-15T08:00:00Z",
    start: str | None = None,
    end: str | None = None,
    **own: object,
) -> dict:
    """Keep a job, the newest first, as the service lists them."""
    moments = {"StartTimeUtc": start, "EndTimeUtc": end}
    properties: dict = {
        "jobType": "Command",
        "command": "bash x",
        "environmentId": f"{at.id}/environments/aj/versions/4f0c",
        "computeId": f"{at.id}/computes/gpu",
        "experimentName": "aj",
        "status": status,
        "properties": {word: moment for word, moment in moments.items() if moment},
        **own,
    }
    document = {"properties": properties, "systemData": {"createdAt": created, "createdBy": "Ada"}}
    path = f"{at.id}/jobs/{name}"
    made = azure.arm.add(path, document, "JobBase")
    resources = azure.arm.resources
    first = {path.lower(): resources.pop(path.lower())}
    azure.arm.resources = {**first, **resources}
    return made


def cluster(name: str, *limits: dict, users: tuple[dict, ...] = (), subscription: str = ONE, **more: object) -> dict:
    """A row of a virtual cluster in northeurope."""
    return {
        "id": f"/subscriptions/{subscription}/resourceGroups/rg-vc{VCS}/{name}",
        "type": ROW.lower(),
        "name": name,
        "location": "northeurope",
        "resourceGroup": "rg-vc",
        "subscriptionId": subscription,
        "properties": {
            "managed": {
                "locations": ["northeurope"],
                "defaultGroupPolicyOverallQuotas": {"limits": list(users)},
                "quotas": {"northeurope": {"limits": list(limits)}},
                **more,
            }
        },
    }


def limit(series: str, tier: str | None, limit: int | None, used: int | None = 0, name: str | None = None) -> dict:
    return {
        "id": series,
        "name": name or f"{series} NVIDIA H100 80GB GPUs",
        "slaTier": tier,
        "limit": limit,
        "used": used,
    }


def machine(name: str, series: str, gpus: int, cores: int, memory: float, words: str) -> dict:
    return {
        "name": f"Singularity.{name}",
        "instanceTypeSeriesId": series,
        "numberOfGPUs": gpus,
        "numberOfCores": cores,
        "memoryGiB": memory,
        "description": words,
    }


def supply(azure: SmallAzure) -> None:
    """One cluster with GPUs and CPUs, and the catalogue of its region."""
    azure.arm.rows.append(
        cluster(
            "vc-blue",
            limit("H100v5", "Premium", 16, 16),
            limit("H100v5", "Standard", 32, None),
            limit("H100v5", "Spot", 5, 1),
            limit("Dcpu", "Basic", None, 3, "Dcpu vCPUs"),
            limit("A100v4", "Premium", 0, 0, "A100v4 NVIDIA A100 GPUs"),
            users=(limit("H100v5", None, 48, 16), limit("M300", None, 8, 0, "M300 AMD MI300X GPUs")),
        )
    )
    azure.arm.series[ONE, "northeurope"] = [
        machine("H8", "H100v5", 8, 96, 1800, "8 x NVIDIA H100 80GB, NVLink, IB, Scratch Storage (GiB): 3500"),
        machine("H4", "H100v5", 4, 48, 900, "4 x NVIDIA H100 80GB"),
        machine("D8", "Dcpu", 0, 8, 32, "8 vCPUs"),
        machine("D4", "Dcpu", 0, 4, 16, "4 vCPUs"),
        machine("A8", "A100v4", 8, 96, 900, "8 x NVIDIA A100 80GB, NVLink"),
    ]


__all__ = ["ONE", "TWO", "WORKSPACE", "Sky"]
