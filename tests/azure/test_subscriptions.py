"""Subscriptions: all pages, usable ones, and those of another tenant told once."""

from __future__ import annotations

import pytest

from aj.azure import subscriptions
from aj.azure.subscriptions import InScope, Subscription
from tests.servers.azure import TENANT, SmallAzure

OTHER = "bbbbbbbb-0000-0000-0000-00000000000b"


def row(number: int, state: str = "Enabled", tenant: str = TENANT) -> dict[str, str]:
    return {"subscriptionId": f"sub-{number}", "displayName": f"Sub {number}", "tenantId": tenant, "state": state}


@pytest.mark.rule("A-030", "A-008")
def test_every_page_is_read(azure: SmallAzure) -> None:
    azure.arm.subscriptions = [row(1), row(2, "Disabled"), row(3, "Warned")]
    found = subscriptions.list_all(azure.session)
    assert found[0] == Subscription("sub-1", "Sub 1", TENANT, "Enabled")
    assert [one.id for one in found] == ["sub-1", "sub-2", "sub-3"]
    assert len(azure.arm_server.got) == 3


@pytest.mark.rule("A-030", "A-060")
def test_only_usable_states_count() -> None:
    states = ["Enabled", "Warned", "PastDue", "Disabled", "Deleted", "Unheard", ""]
    found = [Subscription(state, state, TENANT, state) for state in states]
    assert [one.id for one in subscriptions.in_scope(found, None).subscriptions] == ["Enabled", "Warned", "PastDue"]


@pytest.mark.rule("A-019")
def test_those_of_another_tenant_are_skipped_with_one_notice() -> None:
    found = [
        Subscription(str(n), str(n), tenant, "Enabled") for n, tenant in enumerate([TENANT, OTHER, OTHER.upper(), None])
    ]
    scope = subscriptions.in_scope(found, TENANT.upper())
    assert [one.id for one in scope.subscriptions] == ["0", "3"]
    assert scope.notice == f"2 subscriptions of another tenant than {TENANT.upper()} skipped"
    assert subscriptions.in_scope(found[:1], TENANT) == InScope((found[0],))
