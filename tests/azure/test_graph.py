"""The resource graph: quoted, ordered, whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.azure import accounts, graph, identity, workspaces
from aj.azure.arm import Workspace
from aj.azure.graph import Question
from aj.base.errors import RemoteError, Unavailable
from tests.servers import arm as server
from tests.servers.azure import ONE, TWO, SmallAzure
from tests.servers.loopback import Answer, problem


def spaces(azure: SmallAzure, *names: str, subscription: str = ONE) -> None:
    for name in names:
        azure.add_workspace(Workspace(subscription, "rg-one", name))


@pytest.mark.rule("A-031", "A-045")
@pytest.mark.parametrize("page_rows", [1, 2, 100])
def test_an_answer_is_read_to_its_end_by_its_token(azure: SmallAzure, page_rows: int) -> None:
    spaces(azure, "c", "a", "b")
    azure.arm.page_rows = page_rows
    found = workspaces.find(azure.session, [ONE])
    assert [one.at.name for one in found] == ["a", "b", "c"]
    bodies = [got.json() for got in azure.arm_server.got]
    assert len(bodies) == -(-3 // page_rows)
    assert bodies[0] == {
        "subscriptions": [ONE],
        "query": "resources | where type =~ 'microsoft.machinelearningservices/workspaces'"
        " | project id, name, location | order by id asc",
        "options": {"resultFormat": "objectArray", "$top": 1000},
    }
    assert all("$skipToken" in body["options"] for body in bodies[1:])  # type: ignore[index]


@pytest.mark.rule("A-045")
def test_a_cut_answer_without_a_token_is_an_error(azure: SmallAzure) -> None:
    spaces(azure, "a", "b")
    azure.arm.cuts_graph = True
    with pytest.raises(
        RemoteError, match="could not list workspaces: the answer is cut and there is no way to its rest"
    ):
        workspaces.find(azure.session, [ONE])


@pytest.mark.rule("A-045")
def test_a_token_that_comes_again_ends_with_an_error(azure: SmallAzure) -> None:
    page = {"totalRecords": 9, "count": 0, "resultTruncated": "true", "data": [], "$skipToken": "same"}
    azure.arm_server.on("ResourceGraph", *[Answer(200, page)] * 2)
    with pytest.raises(RemoteError, match="leads back"):
        workspaces.find(azure.session, [ONE])


@pytest.mark.rule("A-045", "A-060")
def test_more_than_a_hundred_subscriptions_are_asked_for_in_turn(azure: SmallAzure) -> None:
    many = [f"{number:08}-0000-0000-0000-000000000000" for number in range(250)]
    spaces(azure, "first", subscription=many[0])
    spaces(azure, "last", subscription=many[-1])
    found = workspaces.find(azure.session, many)
    assert [one.at.name for one in found] == ["first", "last"]
    assert [len(got.json()["subscriptions"]) for got in azure.arm_server.got] == [100, 100, 50]  # type: ignore[index]
    assert workspaces.find(azure.session, []) == ()


@pytest.mark.rule("A-045")
@settings(max_examples=150)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_value_is_one_quoted_word(value: str) -> None:
    """What the service's reader finds between the quotes is the value, and the query goes on behind it."""
    arm = server.Arm(rows=[{"id": "1", "subscriptionId": "s", "name": value, "type": "t"}])
    arm.rows.append({"id": "2", "subscriptionId": "s", "name": value + "x", "type": "t"})
    faults: list[str] = []
    found = arm._run(Question("t", ("name",), name=value).query, ["s"], faults)
    assert faults == []
    assert [row["id"] for row in found if row["name"] == value] == ["1"]
    assert len(found) == 1


def test_the_quotes_themselves() -> None:
    assert graph.quoted("a'b\\c\nd") == "'a\\'b\\\\c\\nd'"


def test_names_and_groups_are_compared_without_case(azure: SmallAzure) -> None:
    spaces(azure, "Alpha", "beta")
    assert [one.at.name for one in workspaces.find(azure.session, [ONE], name="ALPHA")] == ["Alpha"]
    assert workspaces.find(azure.session, [ONE], name="alpha", group="other") == ()
    assert workspaces.find(azure.session, [TWO], name="alpha") == ()


@pytest.mark.rule("A-002")
def test_a_question_by_post_is_asked_again(azure: SmallAzure) -> None:
    spaces(azure, "a")
    azure.arm_server.on("ResourceGraph", problem(503, "C", "m"))
    assert len(workspaces.find(azure.session, [ONE])) == 1
    azure.arm_server.on("ResourceGraph", *[problem(500, "C", "m")] * 4)
    with pytest.raises(Unavailable):
        workspaces.find(azure.session, [ONE])


@pytest.mark.rule("A-043")
def test_identities_and_storage_accounts(azure: SmallAzure) -> None:
    base = f"/subscriptions/{ONE}/resourceGroups/rg-one/providers"
    row = {"resourceGroup": "rg-one", "subscriptionId": ONE, "location": "northeurope"}
    azure.arm.rows += [
        {
            **row,
            "type": "microsoft.managedidentity/userassignedidentities",
            "id": f"{base}/Microsoft.ManagedIdentity/userAssignedIdentities/uai",
            "name": "uai",
            "properties": {"clientId": "c", "principalId": "p", "tenantId": "t"},
        },
        {
            **row,
            "type": "microsoft.storage/storageaccounts",
            "id": f"{base}/Microsoft.Storage/storageAccounts/sa",
            "name": "sa",
            "kind": "StorageV2",
            "sku": {"name": "Standard_LRS", "tier": "Standard"},
        },
    ]
    (uai,) = identity.find(azure.session, [ONE])
    assert (uai.name, uai.subscription, uai.group, uai.location) == ("uai", ONE, "rg-one", "northeurope")
    assert (uai.client_id, uai.principal_id) == ("c", "p")
    (account,) = accounts.find(azure.session, [ONE])
    assert (account.name, account.kind, account.sku, account.group) == ("sa", "StorageV2", "Standard_LRS", "rg-one")
    assert identity.find(azure.session, [ONE], name="other") == ()
