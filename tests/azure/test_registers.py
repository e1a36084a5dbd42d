"""What a workspace keeps by name: environments and datastores."""

from __future__ import annotations

import pytest

from aj.azure import datastores, environments
from aj.azure.environments import Version
from aj.base import redact
from aj.base.errors import NotFound, OutcomeUnknown, Refused, Unavailable
from tests.conftest import MovedClock
from tests.servers.azure import WORKSPACE, SmallAzure
from tests.servers.loopback import Cut, problem

IMAGE = "mcr.example/azureml/openmpi:latest"
KEY = "cGxhbnRlZC1hY2NvdW50LWtleQ"


@pytest.mark.rule("A-040")
def test_an_environment_is_put_read_and_listed(azure: SmallAzure) -> None:
    assert environments.find(azure.session, WORKSPACE, "aj", "v1") is None
    made = environments.put(azure.session, WORKSPACE, "aj", "v1", image=IMAGE)
    assert made == Version(f"{WORKSPACE.id}/environments/aj/versions/v1", "v1", IMAGE, "Linux", False)
    assert environments.find(azure.session, WORKSPACE, "aj", "v1") == made
    assert azure.arm_server.got[1].json() == {"properties": {"image": IMAGE, "osType": "Linux"}}
    environments.put(azure.session, WORKSPACE, "aj", "v2", image=IMAGE)
    assert [one.name for one in environments.versions(azure.session, WORKSPACE, "aj")] == ["v1", "v2"]


@pytest.mark.rule("A-040")
def test_environments_are_listed_page_by_page(azure: SmallAzure) -> None:
    for name in ("aj", "other"):
        azure.arm.add(
            f"{WORKSPACE.id}/environments/{name}",
            {"properties": {"latestVersion": "3", "isArchived": name == "other"}},
            "EnvironmentContainer",
        )
    found = environments.list_all(azure.session, WORKSPACE)
    assert [(one.name, one.latest, one.is_archived) for one in found] == [("aj", "3", False)]


def test_the_same_put_takes_a_version_out_of_the_archive(azure: SmallAzure) -> None:
    path = f"{WORKSPACE.id}/environments/aj/versions/v1"
    azure.arm.add(path, {"properties": {"image": IMAGE, "osType": "Linux", "isArchived": True}}, "EnvironmentVersion")
    before = environments.find(azure.session, WORKSPACE, "aj", "v1")
    assert before is not None
    assert before.is_archived
    assert not environments.put(azure.session, WORKSPACE, "aj", "v1", image=IMAGE).is_archived


@pytest.mark.rule("A-004")
def test_putting_the_same_again_is_safe_and_so_repeated(azure: SmallAzure, clock: MovedClock) -> None:
    azure.arm_server.on("PUT", Cut.AFTER_BODY, problem(503, "Busy", "later"))
    environments.put(azure.session, WORKSPACE, "aj", "v1", image=IMAGE)
    assert azure.arm_server.targets().count(f"PUT {WORKSPACE.path}/environments/aj/versions/v1") == 3
    azure.arm_server.on("PUT", Cut.MID_ANSWER)
    datastores.put(azure.session, WORKSPACE, "aj_1", account="acc", container="data", endpoint="core.azure.test")
    assert len(clock.slept) == 3
    azure.arm_server.on("PUT", *[Cut.AFTER_BODY] * 4)
    with pytest.raises(Unavailable):
        environments.put(azure.session, WORKSPACE, "aj", "v1", image=IMAGE)


def test_an_image_that_cannot_be_registered_is_named_with_the_code(azure: SmallAzure) -> None:
    azure.arm_server.on("PUT", problem(409, "ImageMismatch", "another image is there"))
    with pytest.raises(Refused) as error:
        environments.put(azure.session, WORKSPACE, "aj", "v1", image=IMAGE)
    assert error.value.message == (
        f"could not register image {IMAGE} as an environment: ImageMismatch: another image is there"
    )


@pytest.mark.rule("A-039")
def test_a_datastore_is_put_read_and_listed(azure: SmallAzure) -> None:
    assert datastores.find(azure.session, WORKSPACE, "aj_1") is None
    made = datastores.put(azure.session, WORKSPACE, "aj_1", account="acc", container="data", endpoint="core.azure.test")
    assert azure.arm_server.got[-1].json() == {
        "properties": {
            "datastoreType": "AzureBlob",
            "accountName": "acc",
            "containerName": "data",
            "endpoint": "core.azure.test",
            "protocol": "https",
            "credentials": {"credentialsType": "None"},
        }
    }
    assert (made.account, made.container, made.endpoint, made.credentials) == ("acc", "data", "core.azure.test", "None")
    assert datastores.find(azure.session, WORKSPACE, "aj_1") == made
    azure.arm.add(
        f"{WORKSPACE.id}/datastores/{datastores.CODE}",
        {
            "properties": {
                "datastoreType": "AzureBlob",
                "accountName": "saone",
                "containerName": "azureml-blobstore",
                "endpoint": "core.azure.test",
                "isDefault": True,
                "credentials": {"credentialsType": "None"},
            }
        },
        "Datastore",
    )
    found = datastores.list_all(azure.session, WORKSPACE)
    assert [(one.name, one.is_default) for one in found] == [("aj_1", False), (datastores.CODE, True)]


@pytest.mark.rule("A-005")
def test_a_datastore_without_the_right_names_its_resource(azure: SmallAzure) -> None:
    azure.arm_server.on("PUT", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused, match=f"no right on {WORKSPACE.id}/datastores/aj_1"):
        datastores.put(azure.session, WORKSPACE, "aj_1", account="acc", container="data", endpoint="e")


@pytest.mark.rule("A-011")
@pytest.mark.parametrize("kind", ["AccountKey", "Sas"])
def test_the_secret_of_a_datastore_is_masked_from_then_on(azure: SmallAzure, kind: str) -> None:
    name = "sasToken" if kind == "Sas" else "key"
    azure.arm.secrets[f"{WORKSPACE.id}/datastores/{datastores.CODE}".lower()] = {"secretsType": kind, name: KEY + kind}
    found = datastores.secret(azure.session, WORKSPACE, datastores.CODE)
    assert (found.kind, found.value) == (kind, KEY + kind)
    assert KEY not in repr(found)
    assert redact.text(f"key {found.value}") == "key ***"
    assert azure.arm_server.got[-1].body == b""
    with pytest.raises(NotFound):
        datastores.secret(azure.session, WORKSPACE, "nobody")
    azure.arm_server.on("/listSecrets", Cut.AFTER_BODY)
    with pytest.raises(OutcomeUnknown):
        datastores.secret(azure.session, WORKSPACE, datastores.CODE)
