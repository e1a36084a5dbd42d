"""Who is signed in: told for each scope, never with the token."""

from __future__ import annotations

import pytest

from aj.azure import identity
from aj.net.token import Person
from tests.servers.azure import ML_SCOPE, TENANT, SmallAzure

PERSON = "99999999-0000-0000-0000-000000000001"


@pytest.mark.rule("A-016", "A-011")
def test_each_scope_is_told_without_its_token(azure: SmallAzure) -> None:
    found = identity.signed_in(azure.session)
    assert [one.scope for one in found] == [azure.cloud.arm_scope, ML_SCOPE, "https://storage.azure.com/.default"]
    assert {one.person for one in found} == {Person(TENANT, PERSON, "ada@example.com")}
    assert {one.source for one in found} == {"environment"}
    assert all(token.value not in repr(found) for token in azure.issuer.kept.values())


def test_signing_in_as_someone_else_is_seen(azure: SmallAzure) -> None:
    before = identity.whoami(azure.session)
    azure.issuer.person = "99999999-0000-0000-0000-000000000002"
    azure.issuer.kept.clear()
    after = identity.whoami(azure.session)
    assert (before.object_id, after.object_id) == (PERSON, azure.issuer.person)
    assert before != after
