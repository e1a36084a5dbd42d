"""Addresses built from names, and the verbs of the Resource Manager."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.azure import arm, computes, jobs
from aj.azure.arm import Workspace
from aj.base import proc
from aj.base.errors import AuthError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable, UserError
from aj.net.origin import Origin
from tests.conftest import MovedClock
from tests.servers.azure import ML_SCOPE, ONE, TENANT, WORKSPACE, SmallAzure
from tests.servers.loopback import Answer, Cut, problem, serving
from tests.servers.test_spec import JOB

BASE = Origin.parse("management.example")
ROOMS = Path(arm.__file__).parent


@pytest.mark.rule("A-007")
@settings(max_examples=150)
@given(st.lists(st.text(min_size=1).filter(lambda part: part not in (".", "..")), min_size=1, max_size=5))
def test_each_name_is_one_part_of_the_address_whatever_it_holds(parts: list[str]) -> None:
    try:
        url = arm.url(BASE, arm.path(*parts), {"api-version": "1"})
    except UnicodeEncodeError:
        return  # a lone surrogate has no form in an address
    split = urlsplit(url)
    assert [unquote(part) for part in split.path.split("/")[1:]] == parts
    assert parse_qsl(split.query) == [("api-version", "1")]
    assert Origin.of_url(url) == BASE


@pytest.mark.rule("A-007")
@pytest.mark.parametrize("parts", [("",), ("subscriptions", ""), ("a", "", "b"), ("..",), ("a", ".")])
def test_an_empty_name_builds_no_address(parts: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="an address cannot be built"):
        arm.path(*parts)


@pytest.mark.parametrize("at", [Workspace("", "g", "w"), Workspace("s", "", "w"), Workspace("s", "g", "")])
def test_no_call_goes_out_with_an_empty_coordinate(azure: SmallAzure, at: Workspace) -> None:
    with pytest.raises(UserError, match="there is no name after"):
        computes.list_all(azure.session, at)
    with pytest.raises(UserError, match="there is no name after"):
        jobs.put(azure.session, at, "a", JOB)
    assert azure.arm_server.got == []


def test_a_workspace_is_read_back_from_its_id() -> None:
    assert Workspace.of_id(WORKSPACE.id) == WORKSPACE
    assert Workspace.of_id(WORKSPACE.id.replace("resourceGroups", "resourcegroups")) == WORKSPACE
    assert str(WORKSPACE) == f"ws-one ({ONE}/rg-one)"
    with pytest.raises(RemoteError, match="is not the id of a workspace"):
        Workspace.of_id(WORKSPACE.id + "/computes/c")


@pytest.mark.rule("A-016", "A-017", "A-019")
def test_the_token_is_for_the_manager_and_the_tenant(azure: SmallAzure) -> None:
    computes.list_all(azure.session, WORKSPACE)
    assert azure.issuer.asked == [(azure.cloud.arm_scope, TENANT, None)]


@pytest.mark.rule("A-006")
def test_a_foreign_next_link_gets_no_request(azure: SmallAzure) -> None:
    with serving(lambda got: problem(500, "C", "m")) as thief:
        azure.arm_server.on("/computes", Answer(200, {"value": [], "nextLink": f"{thief.url}/computes?$skip=1"}))
        with pytest.raises(RemoteError, match=r"a link to host 127\.0\.0\.1:\d+ was not followed: it is not 127"):
            computes.list_all(azure.session, WORKSPACE)
        assert thief.got == []


@pytest.mark.rule("A-021")
def test_a_401_renews_the_token_once_for_a_question_and_a_change(azure: SmallAzure) -> None:
    azure.add_workspace()
    computes.list_all(azure.session, WORKSPACE)
    azure.issuer.spoil()
    azure.arm.challenge = 'Bearer error="insufficient_claims", claims="eyJhIjoxfQ=="'
    computes.list_all(azure.session, WORKSPACE)
    assert azure.issuer.asked[-1] == (azure.cloud.arm_scope, TENANT, '{"a":1}')
    azure.issuer.spoil()
    azure.arm.challenge = "Bearer"
    jobs.put(azure.session, WORKSPACE, "a", JOB)
    assert [asked[2] for asked in azure.issuer.asked] == [None, '{"a":1}', None]
    assert azure.arm_server.targets().count(f"PUT {WORKSPACE.path}/jobs/a") == 2


@pytest.mark.rule("A-021")
def test_a_second_401_is_a_sign_in_error(azure: SmallAzure) -> None:
    azure.arm_server.on("/computes", *[problem(401, "InvalidToken", "no")] * 2)
    with pytest.raises(AuthError, match="could not list the computes of workspace ws-one"):
        computes.list_all(azure.session, WORKSPACE)
    assert len(azure.arm_server.got) == 2


@pytest.mark.rule("A-002", "A-005", "A-210")
def test_a_question_survives_what_passes(azure: SmallAzure, clock: MovedClock) -> None:
    azure.arm_server.on(
        "/computes",
        problem(429, "Throttled", "slow", headers={"Retry-After": "5"}),
        Cut.MID_ANSWER,
        problem(503, "C", "m"),
    )
    assert computes.list_all(azure.session, WORKSPACE) == ()
    assert clock.slept[0] == 5
    assert len(clock.slept) == 3
    azure.arm_server.on("/computes", *[problem(503, "Busy", "later")] * 4)
    with pytest.raises(Unavailable, match="Busy: later"):
        computes.list_all(azure.session, WORKSPACE)


@pytest.mark.rule("A-005")
def test_a_missing_right_names_the_resource(azure: SmallAzure) -> None:
    azure.arm_server.on("/computes", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused) as error:
        computes.list_all(azure.session, WORKSPACE)
    assert error.value.message.endswith(f"(no right on {WORKSPACE.id}/computes)")


@pytest.mark.rule("A-003")
@pytest.mark.parametrize("fault", [Cut.AFTER_HEADERS, Cut.AFTER_BODY, Cut.MID_ANSWER, problem(500, "C", "m")])
def test_a_change_is_sent_once_whatever_happens(azure: SmallAzure, fault: object) -> None:
    azure.arm_server.on("PUT", fault)  # type: ignore[arg-type]
    with pytest.raises(OutcomeUnknown, match="whether it worked to submit job a is not known"):
        jobs.put(azure.session, WORKSPACE, "a", JOB)
    assert azure.arm_server.targets().count(f"PUT {WORKSPACE.path}/jobs/a") <= 1
    assert azure.arm_server.left() == []


@pytest.mark.rule("A-004")
def test_what_may_be_repeated_is_named_and_nothing_else_is() -> None:
    """Only the rooms of environments and datastores put by the verb that repeats."""
    users = {
        path.name
        for path in sorted(ROOMS.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "put_same"
    }
    assert users == {"environments.py", "datastores.py"}
    askers = {
        path.name
        for path in sorted(ROOMS.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "request"
        for word in node.args
        if isinstance(word, ast.Constant) and word.value == "POST"
    }
    assert askers == {"arm.py", "graph.py", "datastores.py"}  # a question, and two that are sent


@pytest.mark.rule("A-017")
def test_scopes_are_those_of_the_cloud(azure: SmallAzure) -> None:
    assert azure.cloud.ml_scope == ML_SCOPE
    assert azure.cloud.arm_scope == f"https://{azure.arm_server.netloc}/.default"


def test_an_absent_thing_is_not_found(azure: SmallAzure) -> None:
    with pytest.raises(NotFound, match="could not read job nobody: ResourceNotFound"):
        jobs.get(azure.session, WORKSPACE, "nobody")


def test_the_rooms_load_no_cloud_library(programs: None) -> None:
    """They are imported where a request is made, and only then."""
    names = sorted(f"aj.azure.{path.stem}" for path in ROOMS.glob("*.py") if path.stem not in ("__init__", "blobs"))
    heavy = ("urllib3", "azure", "msal", "requests", "cryptography", "ssl")
    code = f"import sys, {', '.join(names)}; print([name for name in {heavy} if name in sys.modules])"
    found = proc.run([sys.executable, "-I", "-c", code], timeout_s=60)
    assert (found.code, found.out.decode().strip()) == (0, "[]"), found.err.decode()
