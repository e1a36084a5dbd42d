"""Workspaces, datastores, environments, accounts, identities, experiments: from the command line to a checked Azure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.cli import complete
from tests.cli import azure
from tests.cli.azure import Place
from tests.cli.conftest import Shell
from tests.conftest import RunningDaemon
from tests.engine.cloud import ONE, add_job
from tests.servers.azure import WORKSPACE

SUB = WORKSPACE.subscription


@pytest.fixture
def place(
    aj: Shell, daemon: RunningDaemon, loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    with azure.at(aj, tmp_path) as found:
        found("daemon", "start")
        yield found


def add_datastore(place: Place, name: str, account: str, *, is_default: bool = False) -> None:
    about = {
        "datastoreType": "AzureBlob",
        "accountName": account,
        "containerName": "data",
        "credentials": {"credentialsType": "None"},
    }
    made = place.azure.arm.add(f"{WORKSPACE.id}/datastores/{name}", {"properties": about}, "Datastore")
    made["properties"]["isDefault"] = is_default


def add_environment(place: Place, name: str, *versions: str) -> None:
    at = f"{WORKSPACE.id}/environments/{name}"
    place.azure.arm.add(at, {"properties": {"latestVersion": versions[-1]}}, "EnvironmentContainer")
    for version in versions:
        about = {"image": f"registry.example/{name}:{version}", "osType": "Linux"}
        place.azure.arm.add(f"{at}/versions/{version}", {"properties": about}, "EnvironmentVersion")


@pytest.mark.rule("C-036", "A-172", "C-004")
def test_workspaces_are_listed_shown_and_chosen(place: Place) -> None:
    place.azure.add_workspace()
    listed = place("ws", "list")
    assert listed.rows == [["ws-one", "rg-one", SUB, "northeurope", "no"]]
    assert place("workspace", "list", "-o", "name").out == "ws-one\n"
    assert "no workspace is chosen" in place("ws", "show", code=2).err
    before = place.shell.home.project().directory.joinpath("aj.toml").read_text()
    dry = place("ws", "set", "ws-one", "-d", "--json").json
    assert (dry["status"], dry["items"][0]["resource_group"]) == ("noop", "rg-one")
    assert place.shell.home.project().directory.joinpath("aj.toml").read_text() == before
    done = place("ws", "set", "ws-one")
    assert done.out == f"ws-one ({SUB}/rg-one) is the workspace in .azure_jobs/aj.toml\n"
    written = tomllib.loads(place.shell.home.project().directory.joinpath("aj.toml").read_text())
    assert written["workspace"] == {"name": "ws-one", "resource_group": "rg-one", "subscription_id": SUB}
    assert written["cloud"] == "small", "the rest of the file stays"
    shown = place("ws", "show", "--json").json["item"]
    assert (shown["name"], shown["is_current"], shown["storage_account"]) == ("ws-one", True, "saone")
    assert place("ws", "list", "--refresh", "--json").json["items"][0]["is_current"] is True
    assert "ws-two" in place("ws", "show", "ws-two", code=3).err


@pytest.mark.rule("C-036")
def test_coordinates_are_chosen_without_asking_anybody(place: Place) -> None:
    place("daemon", "stop")
    place.authority.refuses = True
    place("ws", "set", "s-1/g-1/w-1")
    written = tomllib.loads(place.shell.home.project().directory.joinpath("aj.toml").read_text())
    assert written["workspace"] == {"name": "w-1", "resource_group": "g-1", "subscription_id": "s-1"}
    assert "is no workspace" in place("ws", "set", "a/b", code=2).err
    assert "which workspace" in place("ws", "set", code=2).err


@pytest.mark.rule("C-037", "A-175", "A-170", "A-178")
def test_datastores_and_environments_of_a_workspace(place: Place) -> None:
    place.choose()
    add_datastore(place, "workspaceblobstore", "store", is_default=True)
    add_datastore(place, "shared", "sadata")
    add_environment(place, "torch", *(str(number) for number in range(1, 13)))
    rows = place("ds", "list").rows
    assert sorted(row[0] for row in rows) == ["shared", "workspaceblobstore"]
    assert place("datastore", "show", "shared", "--json").json["item"]["account"] == "sadata"
    missing = place("ds", "show", "shard", code=3).err
    assert missing.startswith("aj: workspace ws-one") and "`shared` is the nearest name" in missing
    kept = place("ds", "list", "--json").json
    assert (kept["kind"], kept["is_stale"], kept["failures"]) == ("ds.list", False, []) and kept["age_s"] >= 0
    assert place("env", "list").rows == [["torch", "12", "no"]]
    seen = place("env", "show", "torch")
    assert (len(seen.rows), seen.err) == (10, "2 more: `-n 0` shows all\n")
    assert len(place("env", "show", "torch", "-n", "0", "--json").json["item"]["versions"]) == 12
    assert "`torch` is the nearest name" in place("env", "show", "troch", code=3).err


@pytest.mark.rule("A-176", "C-037")
def test_accounts_and_identities_of_all_subscriptions(place: Place) -> None:
    base = f"/subscriptions/{ONE}/resourceGroups/rg-one/providers"
    identity = f"{base}/Microsoft.ManagedIdentity/userAssignedIdentities/trainer"
    about = {"location": "northeurope", "resourceGroup": "rg-one", "subscriptionId": ONE}
    place.azure.arm.rows += [
        {
            **about,
            "type": "microsoft.storage/storageaccounts",
            "id": f"{base}/Microsoft.Storage/storageAccounts/sadata",
            "name": "sadata",
            "kind": "StorageV2",
            "sku": {"name": "Standard_LRS"},
        },
        {
            **about,
            "type": "microsoft.managedidentity/userassignedidentities",
            "id": identity,
            "name": "trainer",
            "properties": {"clientId": "c-1", "principalId": "p-1"},
        },
    ]
    assert place("sa", "list").rows == [["sadata", "StorageV2", "Standard_LRS", "northeurope", "rg-one", ONE]]
    assert place("uai", "list", "-o", "name").out == f"{identity}\n"
    assert place("uai", "list", "--full").rows[0][-1] == identity


@pytest.mark.rule("C-028")
def test_experiments_and_their_newest_jobs(place: Place) -> None:
    place.choose()
    for name, experiment in (("alpha", "ablation"), ("beta", "ablation"), ("gamma", "sweep")):
        add_job(place.azure, name, experimentName=experiment)
    listed = place("exp", "list")
    assert [row[:2] for row in listed.rows] == [["ablation", "2"], ["sweep", "1"]]
    shown = place("experiment", "show", "ablation", "--json").json["item"]
    assert sorted(job["name"] for job in shown["jobs"]) == ["alpha", "beta"]
    assert place("exp", "show", "none", code=3).err.startswith("aj: no job of experiment none was seen")


@pytest.mark.rule("C-051")
def test_names_that_were_listed_are_completed_without_asking_anybody(place: Place) -> None:
    place.choose()
    add_datastore(place, "shared", "sadata")
    add_environment(place, "torch", "1")
    add_job(place.azure, "alpha", experimentName="ablation")
    for words in (("ws", "list"), ("ds", "list"), ("env", "list"), ("exp", "list")):
        place(*words)
    place("daemon", "stop")
    for words, name in (
        (("ws", "show", ""), "ws-one"),
        (("job", "list", "--ws", ""), "ws-one"),
        (("ds", "show", ""), "shared"),
        (("env", "show", "t"), "torch"),
        (("exp", "show", ""), "ablation"),
    ):
        assert f"\n{name}\t" in complete.answer(words, place.shell.home.settings)
    assert "\nws-one\t" not in complete.answer(("ws", "show", "x"), place.shell.home.settings)
