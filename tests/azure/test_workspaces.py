"""Workspaces, their computes, and the way to their data plane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aj.azure import computes, workspaces
from aj.azure.history import History
from aj.base.errors import NotFound, RemoteError
from aj.net.origin import Origin
from tests.servers.azure import ML_SCOPE, ONE, TENANT, WORKSPACE, SmallAzure
from tests.servers.loopback import Answer


def add_compute(azure: SmallAzure, name: str, **changes: object) -> None:
    properties = {
        "computeType": "AmlCompute",
        "provisioningState": "Succeeded",
        "properties": {
            "vmSize": "STANDARD_ND96",
            "vmPriority": "Dedicated",
            "scaleSettings": {"maxNodeCount": 4, "minNodeCount": 0},
            "nodeStateCounts": {"idleNodeCount": 1, "runningNodeCount": 2, "preparingNodeCount": 0},
        },
    }
    path = f"{WORKSPACE.id}/computes/{name}"
    azure.arm.add(path, {"location": "northeurope", "properties": {**properties, **changes}}, "ComputeResource")


@pytest.mark.rule("A-032")
def test_a_workspace_tells_what_a_submission_needs(azure: SmallAzure) -> None:
    azure.add_workspace()
    facts = workspaces.get(azure.session, WORKSPACE)
    assert (facts.at, facts.location) == (WORKSPACE, "northeurope")
    assert facts.discovery_url == f"{azure.plane.url}/discovery"
    assert facts.workspace_id == "eeeeeeee-0000-0000-0000-000000000001"
    assert (facts.storage_account or "").endswith("/storageAccounts/saone")
    (uai,) = facts.identities
    assert uai.id.endswith("/userAssignedIdentities/uai-one")
    assert uai.client_id == "cccccccc-0000-0000-0000-000000000001"
    with pytest.raises(NotFound, match=f"could not read workspace nobody \\({ONE}/rg-one\\)"):
        workspaces.get(azure.session, replace(WORKSPACE, name="nobody"))


@pytest.mark.rule("A-033")
def test_computes_are_listed_or_read_by_name(azure: SmallAzure) -> None:
    for name in ("a", "b", "c"):
        add_compute(azure, name)
    add_compute(azure, "box", computeType="ComputeInstance", properties={"vmSize": "STANDARD_D2"})
    found = computes.list_all(azure.session, WORKSPACE)
    assert [one.name for one in found] == ["a", "b", "c", "box"]
    assert len(azure.arm_server.got) == 4
    one = computes.find(azure.session, WORKSPACE, "b")
    assert one == found[1]
    assert one is not None
    assert (one.kind, one.provisioning, one.vm_size, one.vm_priority) == (
        "AmlCompute",
        "Succeeded",
        "STANDARD_ND96",
        "Dedicated",
    )
    assert (one.max_nodes, one.nodes) == (4, {"idle": 1, "running": 2, "preparing": 0})
    assert (found[3].kind, found[3].max_nodes, found[3].nodes) == ("ComputeInstance", None, {})
    assert computes.find(azure.session, WORKSPACE, "nobody") is None


@pytest.mark.rule("A-017", "A-041")
def test_the_data_plane_gets_its_own_token(azure: SmallAzure) -> None:
    azure.add_workspace()
    azure.plane.details["run"] = {"runId": "run", "status": "Running"}
    history = History.of(azure.session, workspaces.get(azure.session, WORKSPACE))
    assert history.details("run").status == "Running"
    assert azure.issuer.asked == [(azure.cloud.arm_scope, TENANT, None), (ML_SCOPE, TENANT, None)]


@pytest.mark.rule("A-017", "A-006")
@pytest.mark.parametrize("url", ["https://evil.example/discovery", "http://127.0.0.1:9/discovery", "nothing", ""])
def test_a_data_plane_that_is_none_of_this_cloud_gets_no_token(azure: SmallAzure, url: str) -> None:
    azure.add_workspace()
    facts = replace(workspaces.get(azure.session, WORKSPACE), discovery_url=url)
    with pytest.raises(RemoteError, match=r"was not followed|gives no usable discovery address"):
        workspaces.data_plane(azure.session, facts)
    assert [asked[0] for asked in azure.issuer.asked] == [azure.cloud.arm_scope]


def test_the_token_of_one_data_plane_does_not_go_to_another(azure: SmallAzure) -> None:
    azure.add_workspace()
    wide = replace(azure.cloud, data_plane=(Origin.parse(azure.plane.url), Origin.parse(azure.arm.url)))
    session = replace(azure.session, cloud=wide)
    history = History.of(session, workspaces.get(session, WORKSPACE))
    with pytest.raises(RemoteError, match="was not followed"):
        replace(history, origin=Origin.parse(azure.arm.url)).details("run")


def test_a_workspace_without_its_address_is_an_error(azure: SmallAzure) -> None:
    azure.arm_server.on("/workspaces/ws-one", Answer(200, {"location": "x", "properties": {}}))
    with pytest.raises(RemoteError, match=r"`properties\.discoveryUrl` is missing"):
        workspaces.get(azure.session, WORKSPACE)
