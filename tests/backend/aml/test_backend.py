"""A job for a compute: which workspace has it, whether it is ready, and the submission itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.azure.arm import Workspace
from aj.azure.chosen import Chosen
from aj.azure.workplace import Wish
from aj.backend.aml import backend, payload
from aj.backend.aml.backend import AmlBackend, AmlRequest
from aj.backend.aml.payload import Facts
from aj.base.errors import AjError, AuthError, NotFound, OutcomeUnknown, Refused, RemoteError, UserError
from aj.base.settings import Settings
from aj.model import commandjob
from aj.model.handle import Handle
from aj.model.state import JobState
from aj.model.step import Kind
from tests.backend.aml.test_payload import TEMPLATE
from tests.backend.azure import AT, CODE, NAME, PACKED, Desk, sent, spec
from tests.conftest import MovedClock
from tests.servers.azure import ONE, TENANT, TWO, WORKSPACE, SmallAzure, running
from tests.servers.loopback import Cut, problem

TWIN = Workspace(TWO, "rg-two", "ws-two")
GRAPH = "POST /providers/Microsoft.ResourceGraph/resources"
FULL = TEMPLATE.replace(
    "{service: aml,",
    f"{{service: aml, workspace_name: ws-one, subscription_id: {ONE}, resource_group: rg-one,",
)


@pytest.fixture
def desk(loopback: None, clock: MovedClock, tmp_path: Path) -> Iterator[Desk]:
    with running(Settings({}), clock) as small:
        for one in (ONE, TWO):
            row = {"id": f"/subscriptions/{one}", "subscriptionId": one, "displayName": one, "state": "Enabled"}
            small.arm.subscriptions.append({**row, "tenantId": TENANT})
        small.add_workspace(WORKSPACE)
        small.add_workspace(TWIN)
        yield Desk(small, tmp_path / "cache")


def compute(
    azure: SmallAzure,
    at: Workspace = WORKSPACE,
    name: str = "gpu-cluster",
    *,
    state: str = "Succeeded",
    nodes: int | None = 4,
    kind: str = "AmlCompute",
) -> str:
    own: dict = {} if nodes is None else {"scaleSettings": {"maxNodeCount": nodes, "minNodeCount": 0}}
    properties: dict = {"computeType": kind, "provisioningState": state, "properties": own}
    azure.arm.add(f"{at.id}/computes/{name}", {"location": "northeurope", "properties": properties}, "ComputeResource")
    return f"{at.id}/computes/{name}"


def aml(desk: Desk) -> AmlBackend:
    return backend.make(desk.means)


def plan(desk: Desk, root: Path, template: str = TEMPLATE, **changes: object) -> AmlRequest:
    return aml(desk).plan(spec(root, template, **changes), CODE, accepted_at=AT)


def asked(azure: SmallAzure) -> list[str]:
    """The requests that ask about computes or workspaces, by the end of their path."""
    return [got.target for got in azure.arm_server.got if "/computes" in got.path or "ResourceGraph" in got.path]


# Finding it


@pytest.mark.rule("A-050", "A-033")
def test_whole_coordinates_mean_one_read(desk: Desk, tmp_path: Path) -> None:
    found = compute(desk.azure)
    assert plan(desk, tmp_path, FULL).planned.workspace == WORKSPACE
    assert asked(desk.azure) == [f"GET {found}"]


@pytest.mark.rule("A-050", "A-200")
def test_an_unknown_compute_is_told_with_those_there_are(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(NotFound) as error:
        plan(desk, tmp_path, FULL)
    assert error.value.message == "no compute called gpu-cluster in workspace ws-one (has: none)"
    compute(desk.azure, name="gpu-clutser")
    compute(desk.azure, name="cpu")
    with pytest.raises(NotFound) as error:
        plan(desk, tmp_path, FULL)
    assert error.value.message == "no compute called gpu-cluster in workspace ws-one (has: cpu, gpu-clutser)"
    assert error.value.hint == "`gpu-clutser` is the nearest name"


@pytest.mark.rule("A-051")
def test_a_named_workspace_is_asked_alone(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    compute(desk.azure, TWIN)
    named = TEMPLATE.replace("{service: aml,", "{service: aml, workspace_name: WS-two,")
    assert plan(desk, tmp_path, named).planned.workspace == TWIN
    assert not any("rg-one" in words for words in asked(desk.azure))


@pytest.mark.rule("A-052")
def test_without_a_name_everybody_is_asked_by_the_computes_name(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure, TWIN)
    assert plan(desk, tmp_path).planned.workspace == TWIN
    assert asked(desk.azure).count(GRAPH) == 2, "two pages of one row"
    assert all(words == GRAPH or words.endswith("/computes/gpu-cluster") for words in asked(desk.azure))


@pytest.mark.rule("A-052")
def test_the_configured_workspace_comes_first(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    compute(desk.azure, TWIN)
    desk.chosen = Chosen(Wish("ws-two", TWO, "rg-two"))
    assert plan(desk, tmp_path).planned.workspace == TWIN
    assert asked(desk.azure) == [f"GET {TWIN.id}/computes/gpu-cluster"]
    filtered = TEMPLATE.replace("{service: aml,", f"{{service: aml, subscription_id: {ONE},")
    assert plan(desk, tmp_path, filtered).planned.workspace == WORKSPACE, "it does not pass the filter"


@pytest.mark.rule("A-052")
def test_a_configured_workspace_without_it_is_passed_over(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    desk.chosen = Chosen(Wish("ws-two"))
    assert plan(desk, tmp_path).planned.workspace == WORKSPACE
    desk.chosen = Chosen(Wish("ws-none"))
    with pytest.raises(NotFound, match="no workspace is called ws-none"):
        plan(desk, tmp_path)


@pytest.mark.rule("A-052", "A-201")
def test_a_compute_in_two_workspaces_is_told_with_both(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    compute(desk.azure, TWIN)
    with pytest.raises(UserError) as error:
        plan(desk, tmp_path)
    assert error.value.message == (
        f"compute gpu-cluster exists in 2 workspaces: ws-one ({ONE}/rg-one), ws-two ({TWO}/rg-two)"
    )
    assert error.value.hint == "set target.workspace_name"


@pytest.mark.rule("A-053")
def test_a_workspace_that_gives_no_answer_is_a_warning_beside_a_hit(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    desk.azure.arm_server.on(f"GET {TWIN.id}/computes", problem(403, "AuthorizationFailed", "no"))
    assert plan(desk, tmp_path).planned.workspace == WORKSPACE
    (warning,) = desk.said(Kind.WARNING)
    assert warning.startswith(f"workspace ws-two ({TWO}/rg-two) could not be asked: could not look for compute")


@pytest.mark.rule("A-053")
def test_no_answer_is_never_plainly_not_found(desk: Desk, tmp_path: Path) -> None:
    desk.azure.arm_server.on(f"GET {TWIN.id}/computes", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(RemoteError) as silent:
        plan(desk, tmp_path)
    assert silent.value.message.startswith(
        f"compute gpu-cluster was not found in 1 workspace; 1 could not be asked: ws-two ({TWO}/rg-two): "
    )
    with pytest.raises(NotFound) as none:
        plan(desk, tmp_path, TEMPLATE.replace("{service: aml,", "{service: aml, resource_group: rg-two,"))
    assert none.value.message == "no compute called gpu-cluster in 1 workspace (resource group rg-two)"


@pytest.mark.rule("A-053")
def test_a_configured_workspace_that_gives_no_answer_is_asked_again_with_the_others(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    desk.chosen = Chosen(Wish("ws-two", TWO, "rg-two"))
    refusal = problem(403, "AuthorizationFailed", "no")
    desk.azure.arm_server.on(f"GET {TWIN.id}/computes", refusal, refusal)
    assert plan(desk, tmp_path).planned.workspace == WORKSPACE
    assert len(desk.said(Kind.WARNING)) == 1
    elsewhere = TEMPLATE.replace("{service: aml,", f"{{service: aml, subscription_id: {TWO},")
    desk.azure.arm.rows.clear()
    desk.azure.arm_server.on(f"GET {TWIN.id}/computes", refusal)
    with pytest.raises(RemoteError, match="not found in 0 workspaces"):
        plan(desk, tmp_path, elsewhere)


@pytest.mark.rule("A-055", "A-023")
def test_a_found_pair_is_remembered_and_proved_again(desk: Desk, tmp_path: Path, clock: MovedClock) -> None:
    compute(desk.azure, TWIN)
    plan(desk, tmp_path)
    desk.azure.arm_server.got.clear()
    plan(desk, tmp_path)
    assert asked(desk.azure) == [f"GET {TWIN.id}/computes/gpu-cluster"]
    desk.azure.arm_server.got.clear()
    desk.azure.issuer.person = "99999999-0000-0000-0000-000000000002"
    desk.azure.issuer.kept.clear()
    plan(desk, tmp_path)
    assert GRAPH in asked(desk.azure), "another user sees other workspaces"
    clock.move(25 * 3600)
    desk.azure.arm_server.got.clear()
    plan(desk, tmp_path)
    assert GRAPH in asked(desk.azure), "too old"


@pytest.mark.rule("A-055")
def test_a_pair_that_is_no_longer_so_is_forgotten(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure, TWIN)
    plan(desk, tmp_path)
    del desk.azure.arm.resources[f"{TWIN.id}/computes/gpu-cluster".lower()]
    compute(desk.azure)
    assert plan(desk, tmp_path).planned.workspace == WORKSPACE
    desk.azure.arm_server.on(f"GET {WORKSPACE.id}/computes", problem(403, "AuthorizationFailed", "no"))
    assert plan(desk, tmp_path).planned.workspace == WORKSPACE, "the search asks again"


# Whether it can take the job


@pytest.mark.rule("A-054")
@pytest.mark.parametrize(
    ("facts", "nodes", "words"),
    [
        ({"state": "Creating"}, 1, "compute gpu-cluster is Creating, not Succeeded"),
        ({"state": "Failed"}, 1, "compute gpu-cluster is Failed, not Succeeded"),
        ({"nodes": 4}, 5, "compute gpu-cluster has at most 4 nodes, and the job wants 5"),
        ({"nodes": 0}, 1, "compute gpu-cluster has at most 0 nodes, and the job wants 1"),
        (
            {"kind": "ComputeInstance", "nodes": None},
            2,
            "compute gpu-cluster is one machine, and the job wants 2 nodes",
        ),
    ],
)
def test_a_compute_that_cannot_take_it(desk: Desk, tmp_path: Path, facts: dict, nodes: int, words: str) -> None:
    compute(desk.azure, **facts)
    template = FULL.replace("instance_count: 1", f"instance_count: {nodes}")
    with pytest.raises(Refused) as error:
        plan(desk, tmp_path, template)
    assert error.value.message == words
    assert error.value.hint is not None or "Succeeded" in words


@pytest.mark.rule("A-054")
@pytest.mark.parametrize(
    "facts", [{"nodes": 4}, {"nodes": None}, {"kind": "ComputeInstance", "nodes": None}, {"kind": "Kubernetes"}]
)
def test_a_compute_that_can(desk: Desk, tmp_path: Path, facts: dict) -> None:
    compute(desk.azure, **facts)
    nodes = 1 if facts.get("kind") == "ComputeInstance" else 4
    plan(desk, tmp_path, FULL.replace("instance_count: 1", f"instance_count: {nodes}"))


# The submission


@pytest.mark.rule("A-121", "A-127", "A-128", "A-12B")
def test_a_job_is_submitted_whole(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    one = spec(tmp_path, FULL)
    request = plan(desk, tmp_path, FULL)
    assert [got.method for got in desk.azure.arm_server.got] == ["GET"] * 2
    made = aml(desk).submit(request)
    assert str(made) == f"aml://{ONE}/rg-one/ws-one/{NAME}"
    version = commandjob.environment_version("registry.example/train:1")
    facts = Facts("small", f"{WORKSPACE.id}/computes/gpu-cluster", f"{WORKSPACE.id}/environments/aj/versions/{version}")
    body = payload.build(one, payload.options(one), PACKED, facts, accepted_at=AT)
    assert sent(desk.azure) == json.dumps(body, separators=(",", ":")).encode()
    assert desk.told == [Kind.RESOLVE, Kind.UPLOAD, Kind.ENVIRONMENT, Kind.SUBMIT, Kind.DONE]
    assert aml(desk).submit(request) == made
    status = aml(desk).status(made)
    assert status is not None
    assert status.state is JobState.QUEUED
    aml(desk).cancel(made)
    assert aml(desk).status(Handle("aml", made.place, "other")) is None


@pytest.mark.rule("A-180", "A-181")
def test_a_lost_answer_is_unknown_until_it_is_looked_up(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    request = plan(desk, tmp_path)
    desk.azure.arm_server.on(f"PUT {WORKSPACE.id}/jobs/", Cut.MID_ANSWER)
    with pytest.raises(OutcomeUnknown) as error:
        aml(desk).submit(request)
    assert (error.value.details["backend"], error.value.details["workspace"]) == ("aml", WORKSPACE.id)
    assert aml(desk).find(spec(tmp_path, TEMPLATE)) == Handle("aml", f"{ONE}/rg-one/ws-one", NAME)


@pytest.mark.rule("A-181")
def test_without_a_memory_only_whole_coordinates_prove_an_absence(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    with pytest.raises(OutcomeUnknown):
        aml(desk).find(spec(tmp_path, TEMPLATE))
    assert aml(desk).find(spec(tmp_path, FULL)) is None


@pytest.mark.rule("A-086")
def test_a_refusal_is_told_in_the_services_own_words(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    request = plan(desk, tmp_path)
    desk.azure.arm_server.on(f"PUT {WORKSPACE.id}/jobs/", problem(400, "ValidationError", "no such compute"))
    with pytest.raises(RemoteError) as error:
        aml(desk).submit(request)
    assert error.value.message == f"could not submit job {NAME}: ValidationError: no such compute"


@pytest.mark.rule("A-019")
def test_subscriptions_of_another_tenant_are_told(desk: Desk, tmp_path: Path) -> None:
    compute(desk.azure)
    desk.azure.arm.subscriptions[1]["tenantId"] = "other"
    plan(desk, tmp_path)
    assert desk.said(Kind.WARNING) == [f"1 subscription of another tenant than {TENANT} skipped"]


def test_a_job_needs_code_and_an_experiment(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs packed code"):
        aml(desk).plan(spec(tmp_path, TEMPLATE), None, accepted_at=AT)
    with pytest.raises(UserError, match="no experiment is chosen"):
        plan(desk, tmp_path, experiment=None)
    assert desk.azure.arm_server.got == []


@pytest.mark.rule("A-022")
def test_not_being_signed_in_is_told_as_that(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def get(scope: str, *, tenant: str | None = None, claims: str | None = None) -> object:
        raise AuthError("not signed in", hint="az login")

    monkeypatch.setattr(desk.azure.issuer, "get", get)
    with pytest.raises(AjError) as error:
        plan(desk, tmp_path)
    assert isinstance(error.value, AuthError)
