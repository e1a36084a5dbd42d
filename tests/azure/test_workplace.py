"""Which workspace is meant: by coordinates, by name, with filters; and what to write when several are."""

from __future__ import annotations

import pytest

from aj.azure import workplace
from aj.azure.arm import Workspace
from aj.azure.workplace import Places, Wish
from aj.base.errors import NotFound, UserError
from tests.servers.azure import ONE, TENANT, TWO, SmallAzure

HERE = Workspace(ONE, "rg-one", "ws-one")
THERE = Workspace(TWO, "rg-two", "ws-one")


def subscription(azure: SmallAzure, *ids: str, tenant: str = TENANT, state: str = "Enabled") -> None:
    for one in ids:
        row = {"id": f"/subscriptions/{one}", "subscriptionId": one, "displayName": one, "state": state}
        azure.arm.subscriptions.append({**row, "tenantId": tenant})


@pytest.mark.rule("A-050")
def test_whole_coordinates_are_taken_without_a_question(azure: SmallAzure) -> None:
    assert Places(azure.session).named(Wish("ws-one", ONE, "rg-one")) == HERE
    assert azure.arm_server.got == []


@pytest.mark.rule("A-050", "A-051")
def test_a_name_is_looked_up_within_the_filters(azure: SmallAzure) -> None:
    subscription(azure, ONE, TWO)
    azure.add_workspace(HERE)
    azure.add_workspace(THERE)
    places = Places(azure.session)
    assert places.named(Wish("WS-ONE", subscription=TWO)) == THERE
    assert azure.arm_server.targets() == ["POST /providers/Microsoft.ResourceGraph/resources"], "no list of them all"
    assert places.named(Wish("ws-one", group="RG-ONE")) == HERE


@pytest.mark.rule("A-051")
@pytest.mark.parametrize(
    ("others", "hint"),
    [
        ([THERE], "set target.subscription_id"),
        ([Workspace(ONE, "rg-other", "ws-one")], "set target.resource_group"),
        (
            [Workspace(ONE, "rg-other", "ws-one"), Workspace(TWO, "rg-one", "ws-one")],
            "set target.workspace_name, target.subscription_id and target.resource_group",
        ),
    ],
)
def test_several_of_a_name_are_listed(azure: SmallAzure, others: list[Workspace], hint: str) -> None:
    subscription(azure, ONE, TWO)
    for one in (HERE, *others):
        azure.add_workspace(one)
    with pytest.raises(UserError) as error:
        Places(azure.session).named(Wish("ws-one"))
    assert error.value.message.startswith(f"{len(others) + 1} workspaces are called ws-one: ws-one ({ONE}/")
    assert error.value.hint == hint


@pytest.mark.rule("A-051")
def test_none_of_a_name_gives_the_nearest(azure: SmallAzure) -> None:
    subscription(azure, ONE)
    for name in ("ws-blue", "ws-blur", "zzz", "blue-ws"):
        azure.add_workspace(Workspace(ONE, "rg-one", name))
    with pytest.raises(NotFound) as error:
        Places(azure.session).named(Wish("ws-bleu", group="rg-one"))
    assert error.value.message == "no workspace is called ws-bleu (resource group rg-one)"
    assert error.value.hint == "the nearest are `ws-blue`, `ws-blur`, `blue-ws`"
    with pytest.raises(NotFound) as error:
        Places(azure.session).named(Wish("ws-bleu", group="rg-none"))
    assert error.value.hint == "`aj ws list` shows what there is"


@pytest.mark.rule("A-019", "A-060")
def test_other_tenants_are_skipped_with_one_notice(azure: SmallAzure) -> None:
    subscription(azure, ONE)
    subscription(azure, TWO, tenant="other")
    subscription(azure, "off", state="Disabled")
    places = Places(azure.session)
    assert places.subscriptions() == (ONE,)
    assert places.subscriptions() == (ONE,)
    assert places.subscriptions(TWO) == (TWO,)
    assert places.notices == [f"1 subscription of another tenant than {TENANT} skipped"]
    assert {got.path for got in azure.arm_server.got} == {"/subscriptions"}
    assert len(azure.arm_server.got) == len(azure.arm.subscriptions), "page by page, and only once"


@pytest.mark.rule("A-050")
def test_a_wish_compares_without_case() -> None:
    assert Wish("WS-One", ONE.upper(), "RG-one").allows(HERE)
    assert Wish().allows(HERE)
    assert not Wish(group="rg-two").allows(HERE)
    assert Wish("a", "b").workspace is None
    assert Wish("a", "b", "c").filters == ("subscription b", "resource group c")


@pytest.mark.rule("A-201")
def test_what_tells_workspaces_apart() -> None:
    assert workplace.deciding([HERE, Workspace(ONE, "rg-one", "ws-two")]) == "target.workspace_name"
