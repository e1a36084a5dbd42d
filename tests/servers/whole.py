"""A whole Azure on this machine for a real daemon: sign-in, Resource Manager, a workspace, and real blob storage.

A user's `aj.toml` and a few variables lead there, and nothing else: what runs is the program as it is.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from azure.storage.blob import ContainerClient

from aj.azure.datastores import CODE
from aj.base.clock import SYSTEM
from aj.base.settings import Settings
from tests.servers import azure as small
from tests.servers.authority import CLIENT, SECRET, TENANT, Authority, signing_in
from tests.servers.azure import ONE, TWO, WORKSPACE, SmallAzure
from tests.servers.azurite import ACCOUNT, KEY, Azurite


@dataclass(frozen=True)
class Whole:
    """All of it. `seen` looks into the workspace's own container; `env` lets a daemon sign in and trust it."""

    azure: SmallAzure
    authority: Authority
    container: str
    seen: ContainerClient
    table: Mapping[str, object]
    env: Mapping[str, str]

    def settings(self, **more: object) -> str:
        """The text of an `aj.toml` that leads here."""
        lines = ['cloud = "small"', 'experiment = "aj"']
        lines += [f"{name} = {json.dumps(value)}" for name, value in more.items()]
        lines += ["[workspace]", f'name = "{WORKSPACE.name}"', "[clouds.small]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in self.table.items()]
        return "\n".join(lines) + "\n"

    def puts(self) -> list[str]:
        """The names of the jobs that were put, once for each request."""
        return [name for method, name in self._of_jobs() if method == "PUT"]

    def jobs(self) -> set[str]:
        """The names of the jobs that exist."""
        begin = f"{WORKSPACE.id}/jobs/".lower()
        return {path[len(begin) :] for path in self.azure.arm.resources if path.startswith(begin)}

    def body(self, name: str) -> bytes:
        """The bytes of the one body that was put under a name."""
        every = self.azure.arm_server.got
        (body,) = [got.body for got in every if got.method == "PUT" and self._name(got.path) == name]
        return body

    def blobs(self) -> dict[str, str]:
        """The blobs of the container, each with the mark of its last change."""
        return {blob.name: blob.etag for blob in self.seen.list_blobs()}

    def _of_jobs(self) -> list[tuple[str, str]]:
        return [(got.method, name) for got in self.azure.arm_server.got if (name := self._name(got.path))]

    @staticmethod
    def _name(path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        return name if folder == f"{WORKSPACE.id}/jobs" else None


@contextlib.contextmanager
def running(azurite: Azurite, folder: Path) -> Iterator[Whole]:
    """Run it for the length of a block; a request that broke a rule fails it at the end."""
    with signing_in(folder) as (authority, door, own_bundle), small.running(Settings({}), SYSTEM) as azure:
        authority.tokens = azure.arm.tokens
        bundle = folder / "everybody.pem"
        assert azurite.bundle is not None, "tokens go by https alone"
        bundle.write_bytes(own_bundle.read_bytes() + azurite.bundle.read_bytes())
        table = {
            **small.table(azure.arm_server.url, azure.plane_server.url, door.url),
            "blob_endpoint": azurite.endpoint,
        }
        env = {
            "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": CLIENT,
            "AZURE_CLIENT_SECRET": SECRET,
            "AJ_CREDENTIAL": "environment",
            "SSL_CERT_FILE": str(bundle),
        }
        container = f"azureml-blobstore-{uuid.uuid4()}"
        furnish(azure, container)
        url = azurite.place(container).url
        with ContainerClient(url, container, credential=KEY, connection_verify=str(azurite.bundle)) as seen:
            seen.create_container()
            yield Whole(azure, authority, container, seen, table, env)


def furnish(azure: SmallAzure, container: str) -> None:
    """Put in what a submission needs: a workspace with a compute and its container, and a virtual cluster."""
    for one in (ONE, TWO):
        row = {"id": f"/subscriptions/{one}", "subscriptionId": one, "displayName": one, "state": "Enabled"}
        azure.arm.subscriptions.append({**row, "tenantId": TENANT})
    azure.add_workspace()
    azure.arm.add(
        f"{WORKSPACE.id}/computes/gpu-cluster",
        {
            "location": "northeurope",
            "properties": {
                "computeType": "AmlCompute",
                "provisioningState": "Succeeded",
                "properties": {"scaleSettings": {"maxNodeCount": 4, "minNodeCount": 0}},
            },
        },
        "ComputeResource",
    )
    add_datastore(azure, container)
    azure.arm.rows.append(_cluster())
    azure.arm.series[(ONE, "westus3")] = [
        {
            "name": "Singularity.H4_a",
            "instanceTypeSeriesId": "H100v5",
            "numberOfGPUs": 4,
            "numberOfCores": 48,
            "memoryGiB": 800,
            "description": "4 x NVIDIA H100 80GB",
        }
    ]


def add_datastore(azure: SmallAzure, container: str) -> None:
    """Tell the workspace where its code is kept."""
    about = {
        "datastoreType": "AzureBlob",
        "accountName": ACCOUNT,
        "containerName": container,
        "endpoint": "core.azure.test",
        "protocol": "https",
        "credentials": {"credentialsType": "None"},
    }
    azure.arm.add(f"{WORKSPACE.id}/datastores/{CODE}", {"properties": about}, "Datastore")


def _cluster() -> dict[str, object]:
    """A virtual cluster with 16 GPUs of a kind."""
    group = f"/subscriptions/{ONE}/resourceGroups/rg-red"
    limit = {"id": "H100v5", "name": "H100v5 NVIDIA H100 80GB GPUs", "used": 0}
    return {
        "id": f"{group}/providers/Microsoft.MachineLearningServices/virtualclusters/vc-red",
        "type": "microsoft.machinelearningservices/virtualclusters",
        "name": "vc-red",
        "location": "westus3",
        "resourceGroup": "rg-red",
        "subscriptionId": ONE,
        "properties": {
            "managed": {
                "locations": ["westus3"],
                "defaultGroupPolicyOverallQuotas": {"limits": [{**limit, "slaTier": None, "limit": 16}]},
                "quotas": {"westus3": {"limits": [{**limit, "slaTier": "Premium", "limit": 16}]}},
            }
        },
    }
