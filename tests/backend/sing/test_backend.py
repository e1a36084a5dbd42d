"""A job of Singularity from its plan to its end, on servers that check every request."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aj.azure import submission
from aj.azure.arm import Workspace
from aj.azure.chosen import Chosen
from aj.azure.workplace import Wish
from aj.backend.sing import backend, payload
from aj.backend.sing.backend import SingBackend
from aj.backend.sing.payload import Facts
from aj.backend.sing.target import Search
from aj.base.errors import (
    AjError,
    ConfigError,
    NotFound,
    OutcomeUnknown,
    Refused,
    RemoteError,
    Unavailable,
    UserError,
)
from aj.base.settings import Settings
from aj.model import commandjob, handle
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.state import JobState
from aj.model.step import Kind
from tests.backend.azure import AT, BOOTSTRAP, CODE, NAME, PACKED, Courier, Desk, sent, spec, targets
from tests.backend.sing.test_payload import TEMPLATE, UAI
from tests.conftest import MovedClock
from tests.servers.azure import ONE, TENANT, TWO, WORKSPACE, SmallAzure, running
from tests.servers.loopback import Answer, Cut, problem

ML = "Microsoft.MachineLearningServices"
CLIENT = "cccccccc-0000-0000-0000-000000000001"
H100 = "H100v5 NVIDIA H100 80GB GPUs"


@pytest.fixture
def desk(loopback: None, clock: MovedClock, tmp_path: Path) -> Iterator[Desk]:
    with running(Settings({}), clock) as small:
        for one in (ONE, TWO):
            row = {"id": f"/subscriptions/{one}", "subscriptionId": one, "displayName": one, "state": "Enabled"}
            small.arm.subscriptions.append({**row, "tenantId": TENANT})
        small.add_workspace()
        yield Desk(small, tmp_path / "cache")


def vc_id(name: str, sub: str = ONE) -> str:
    group = f"rg-{name.removeprefix('vc-')}"
    return f"/subscriptions/{sub}/resourceGroups/{group}/providers/{ML}/virtualclusters/{name}"


def add_cluster(
    azure: SmallAzure,
    name: str,
    quotas: dict[str, tuple[int, int]],
    user: int,
    *,
    series: str = "H100v5",
    label: str = H100,
    sub: str = ONE,
    group: str | None = None,
) -> None:
    """A row of the graph: what is left at Premium and Standard by region, and for the user."""
    limits = {
        region: {
            "limits": [
                {"id": series, "name": label, "slaTier": tier, "limit": left + 8, "used": 8}
                for tier, left in zip(("Premium", "Standard"), free)
            ]
        }
        for region, free in quotas.items()
    }
    azure.arm.rows.append(
        {
            "id": vc_id(name, sub),
            "type": "microsoft.machinelearningservices/virtualclusters",
            "name": name,
            "location": next(iter(quotas)),
            "resourceGroup": group or f"rg-{name.removeprefix('vc-')}",
            "subscriptionId": sub,
            "properties": {
                "managed": {
                    "locations": list(quotas),
                    "defaultGroupPolicyOverallQuotas": {
                        "limits": [{"id": series, "name": label, "slaTier": None, "limit": user, "used": 0}]
                    },
                    "quotas": limits,
                }
            },
        }
    )


def add_types(azure: SmallAzure, region: str, *types: tuple[str, int, str], series: str = "H100v5") -> None:
    azure.arm.series.setdefault((ONE, region), []).extend(
        {
            "name": f"Singularity.{name}",
            "instanceTypeSeriesId": series,
            "numberOfGPUs": gpus,
            "numberOfCores": 12 * gpus,
            "memoryGiB": 200 * gpus,
            "description": f"{gpus} x {words}",
        }
        for name, gpus, words in types
    )


def worked_example(azure: SmallAzure) -> None:
    plain, linked = "NVIDIA H100 80GB", "NVIDIA H100 80GB, NVLink"
    add_cluster(azure, "vc-blue", {"northeurope": (0, 32)}, 32)
    add_cluster(azure, "vc-red", {"westus3": (16, 0)}, 16)
    add_cluster(azure, "vc-green", {"uksouth": (64, 64)}, 64, series="A100v4", label="A100v4 NVIDIA A100 80GB GPUs")
    add_types(azure, "northeurope", ("H4_a", 4, plain), ("H4_b", 4, linked), ("H8", 8, linked))
    add_types(azure, "westus3", ("H4_a", 4, plain))
    add_types(azure, "uksouth", ("A4", 4, "NVIDIA A100 80GB, NVLink"), series="A100v4")


def sing(desk: Desk) -> SingBackend:
    return backend.make(desk.means)


def plan(desk: Desk, one: JobSpec) -> backend.SingRequest:
    return sing(desk).plan(one, CODE, accepted_at=AT)


def submit(desk: Desk, one: JobSpec) -> Handle:
    return sing(desk).submit(plan(desk, one))


def mutations(azure: SmallAzure) -> list[str]:
    graph = "/providers/Microsoft.ResourceGraph/resources"
    return [got.target for got in azure.arm_server.got if got.method != "GET" and got.path != graph]


# From plan to job


@pytest.mark.rule("A-087", "A-121", "A-12A", "A-127", "A-117")
def test_the_worked_example_is_submitted_whole(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    one = spec(tmp_path, TEMPLATE)
    request = plan(desk, one)
    assert mutations(desk.azure) == [], "a plan sends nothing"
    assert desk.courier.parcels == []
    made = sing(desk).submit(request)
    assert str(made) == f"sing://{ONE}/rg-one/ws-one/{NAME}"
    assert [words.rpartition("/")[2] for words in mutations(desk.azure)] == [
        commandjob.environment_version("train:1"),
        commandjob.datastore("small", "sadata", "data"),
        NAME,
    ]
    assert json.loads(sent(desk.azure)) == request.body
    machine = json.loads(sent(desk.azure))["properties"]["resources"]["properties"]["AISuperComputer"]
    assert (machine["instanceTypes"], machine["slaTier"]) == (["Singularity.H4_a"], "Premium")
    assert machine["VirtualClusterArmId"] == vc_id("vc-red")
    assert "locations" not in machine


@pytest.mark.rule("A-12B")
def test_the_bytes_are_those_that_the_shared_function_makes(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    one = spec(tmp_path, TEMPLATE)
    submit(desk, one)
    version = commandjob.environment_version("train:1")
    facts = Facts(
        "small",
        f"{WORKSPACE.id}/environments/aj/versions/{version}",
        vc_id("vc-red"),
        ("Singularity.H4_a",),
        "Premium",
        None,
        None,
    )
    made = payload.build(one, payload.options(one), PACKED, facts, accepted_at=AT)
    assert sent(desk.azure) == json.dumps(made, separators=(",", ":")).encode()


@pytest.mark.rule("A-179", "A-082", "A-080", "A-073")
def test_steps_and_warnings_are_told_in_order(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    submit(desk, spec(tmp_path, TEMPLATE))
    assert desk.told == [
        Kind.RESOLVE,
        Kind.WARNING,
        Kind.UPLOAD,
        Kind.ENVIRONMENT,
        Kind.STORAGE,
        Kind.SUBMIT,
        Kind.DONE,
    ]
    assert {aj_id for aj_id, _ in desk.steps} == {"0a1b2c3d"}
    assert desk.said(Kind.RESOLVE) == [
        "vc-red in westus3, H4_a at Premium (the default): "
        "8 needed; H100v5 in westus3: 16 left at Premium, 16 left of the user"
    ]
    assert desk.said(Kind.WARNING) == ["no NVLink: vc-red has no such type with NVLink at Premium; H4_a is taken"]
    upload = next(step for _, step in desk.steps if step.kind is Kind.UPLOAD)
    assert (upload.completed, upload.total, upload.skipped, upload.current) == (120, 120, 0, "code.tar.gz")
    ((workspace, parcel),) = desk.courier.parcels
    assert (workspace, parcel.bootstrap, parcel.size_bytes) == (WORKSPACE, BOOTSTRAP, 120)
    assert parcel.archive.name == f"{CODE.digest}.tar.gz"


@pytest.mark.rule("A-073")
def test_a_tier_that_was_written_is_no_default(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    plan(
        desk, spec(tmp_path, TEMPLATE.replace("    instance_count: 2", "    instance_count: 2\n    sla_tier: standard"))
    )
    (words,) = desk.said(Kind.RESOLVE)
    assert words.startswith("vc-blue in northeurope, H4_b at Standard: ")
    assert desk.said(Kind.WARNING) == []


@pytest.mark.rule("A-062", "A-124")
def test_a_cluster_of_several_regions_is_told_which(desk: Desk, tmp_path: Path) -> None:
    add_cluster(desk.azure, "vc-grey", {"northeurope": (4, 4), "westus3": (8, 0)}, 99)
    for region in ("northeurope", "westus3"):
        add_types(desk.azure, region, ("H4_b", 4, "NVIDIA H100 80GB, NVLink"))
    body = plan(desk, spec(tmp_path, TEMPLATE)).body
    machine = body["properties"]["resources"]["properties"]["AISuperComputer"]  # type: ignore[call-overload,index]
    assert machine["locations"] == ["westus3"]


@pytest.mark.rule("A-091", "A-101", "A-118")
def test_what_is_registered_already_is_used(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    one = spec(tmp_path, TEMPLATE)
    submit(desk, one)
    before = len(mutations(desk.azure))
    other = spec(tmp_path, TEMPLATE, id="ffffffff", name="pretrain_ffffffff")
    submit(desk, other)
    assert [words.rpartition("/")[2] for words in mutations(desk.azure)[before:]] == ["pretrain_ffffffff"]


@pytest.mark.rule("A-093", "A-091")
def test_an_archived_environment_is_put_again(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    version = commandjob.environment_version("train:1")
    path = f"{WORKSPACE.id}/environments/aj/versions/{version}"
    old = {"properties": {"image": "train:1", "osType": "Linux", "isArchived": True}}
    desk.azure.arm.add(path, old, "EnvironmentVersion")
    submit(desk, spec(tmp_path, TEMPLATE))
    assert f"PUT {path}" in mutations(desk.azure)


# What stops it


@pytest.mark.rule("A-091", "A-101", "A-127")
def test_a_name_that_holds_something_else_is_never_overwritten(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    version = commandjob.environment_version("train:1")
    path = f"{WORKSPACE.id}/environments/aj/versions/{version}"
    desk.azure.arm.add(path, {"properties": {"image": "evil:1", "osType": "Linux"}}, "EnvironmentVersion")
    with pytest.raises(Refused, match="holds the image evil:1, not train:1"):
        plan(desk, spec(tmp_path, TEMPLATE))
    del desk.azure.arm.resources[path.lower()]
    store = commandjob.datastore("small", "sadata", "data")
    stored = {
        "datastoreType": "AzureBlob",
        "accountName": "sadata",
        "containerName": "other",
        "credentials": {"credentialsType": "None"},
    }
    desk.azure.arm.add(f"{WORKSPACE.id}/datastores/{store}", {"properties": stored}, "Datastore")
    with pytest.raises(Refused, match="is AzureBlob sadata/other, not sadata/data"):
        plan(desk, spec(tmp_path, TEMPLATE))
    assert mutations(desk.azure) == []
    stored["containerName"] = "data"
    assert plan(desk, spec(tmp_path, TEMPLATE)).planned.unregistered == ()


@pytest.mark.rule("A-092", "A-202")
def test_an_image_that_cannot_be_registered_stops_it(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    one = spec(tmp_path, TEMPLATE)
    request = plan(desk, one)
    desk.azure.arm_server.on("PUT", problem(400, "UserError", "no such image"))
    with pytest.raises(RemoteError) as error:
        sing(desk).submit(request)
    assert error.value.message == "could not register image train:1 as an environment: UserError: no such image"
    assert error.value.details["left"] == (PACKED.archive, PACKED.bootstrap)
    desk.azure.arm_server.on("/environments/", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused, match="image train:1 could not be looked up: could not read environment aj:"):
        plan(desk, one)
    assert not any(words.startswith("PUT") and "/jobs/" in words for words in mutations(desk.azure))


@pytest.mark.rule("A-103")
def test_a_container_without_a_right_names_the_role(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    desk.azure.arm_server.on(f"PUT {WORKSPACE.id}/datastores/", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused) as error:
        sing(desk).submit(request)
    assert error.value.hint == "role Storage Blob Data Contributor on account sadata for whoever the job runs as"
    desk.azure.arm_server.on(f"GET {WORKSPACE.id}/datastores/", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused) as error:
        plan(desk, spec(tmp_path, TEMPLATE))
    assert "role Storage Blob Data Contributor" in (error.value.hint or "")


@pytest.mark.rule("A-084")
def test_no_room_anywhere_sends_nothing(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    with pytest.raises(Refused) as error:
        plan(desk, spec(tmp_path, TEMPLATE.replace("instance_count: 2", "instance_count: 50")))
    assert "in 3 virtual clusters:" in error.value.message
    assert mutations(desk.azure) == []


@pytest.mark.rule("A-046", "A-085")
def test_a_part_that_cannot_be_read_fails_it_by_name(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    desk.azure.arm_server.on("locations/uksouth", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused) as error:
        plan(desk, spec(tmp_path, TEMPLATE))
    assert (
        f"could not read every virtual cluster in scope: 1 part gave no answer: uksouth ({ONE})" in error.value.message
    )
    desk.azure.arm_server.on("locations/uksouth", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused, match="vc-green: could not be read: could not list the instance types"):
        plan(desk, spec(tmp_path, TEMPLATE.replace("instance_count: 2", "instance_count: 50")))


@pytest.mark.rule("A-046", "A-083")
def test_a_cluster_that_is_named_does_not_depend_on_others(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    named = TEMPLATE.replace("{service: sing,", "{service: sing, name: VC-Blue,")
    request = plan(desk, spec(tmp_path, named))
    assert request.planned.numbers is not None
    assert "32 left at Standard" in request.planned.numbers
    assert all("uksouth" not in got.path for got in desk.azure.arm_server.got)
    assert desk.said(Kind.WARNING) == ["tier Standard instead of Premium: vc-blue has 0 of 8 GPUs free at Premium"]


@pytest.mark.rule("A-083", "A-060")
def test_a_cluster_of_no_or_several_such_names(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    add_cluster(desk.azure, "vc-red", {"westus3": (1, 1)}, 1, sub=TWO)
    named = TEMPLATE.replace("{service: sing,", "{service: sing, name: vc-red,")
    with pytest.raises(UserError) as twice:
        plan(desk, spec(tmp_path, named))
    assert twice.value.message == f"2 virtual clusters are called vc-red: vc-red ({ONE}/rg-red), vc-red ({TWO}/rg-red)"
    assert twice.value.hint == "set target.subscription_id"
    plan(desk, spec(tmp_path, named.replace("name: vc-red,", f"name: vc-red, subscription_id: {ONE},")))
    with pytest.raises(NotFound) as none:
        plan(desk, spec(tmp_path, named.replace("name: vc-red,", "name: vc-rde, resource_group: rg-red,")))
    assert none.value.message == "no virtual cluster is called vc-rde (filters: resource group rg-red)"
    assert none.value.hint == "the nearest are `vc-red`"


@pytest.mark.rule("A-083")
def test_clusters_of_one_name_and_subscription_differ_by_group(desk: Desk, tmp_path: Path) -> None:
    for group in ("rg-a", "rg-b"):
        add_cluster(desk.azure, "vc-red", {"westus3": (1, 1)}, 1, group=group)
        desk.azure.arm.rows[-1]["id"] += group
    with pytest.raises(UserError) as error:
        plan(desk, spec(tmp_path, TEMPLATE.replace("{service: sing,", "{service: sing, name: vc-red,")))
    assert error.value.hint == "set target.resource_group"


@pytest.mark.rule("A-084", "A-087")
def test_filters_that_leave_nothing(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    filtered = TEMPLATE.replace("{service: sing,", f"{{service: sing, subscription_id: {TWO}, resource_group: rg-x,")
    with pytest.raises(NotFound) as error:
        plan(desk, spec(tmp_path, filtered))
    assert error.value.message == f"there is no virtual cluster (filters: subscription {TWO}, resource group rg-x)"


# Its workspace


@pytest.mark.rule("A-056")
def test_a_workspace_must_be_named_somewhere(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    bare = spec(tmp_path, TEMPLATE.replace(" workspace_name: ws-one,", ""))
    with pytest.raises(ConfigError) as error:
        plan(desk, bare)
    assert error.value.hint == "write target.workspace_name, or set workspace.name in aj.toml"
    assert desk.azure.arm_server.got == []
    desk.chosen = Chosen(Wish("ws-one", ONE, "rg-one"))
    assert plan(desk, bare).planned.workspace == WORKSPACE


@pytest.mark.rule("A-056", "A-050")
def test_the_coordinates_of_the_template_are_the_clusters_and_may_decide(desk: Desk, tmp_path: Path) -> None:
    other = desk.azure.add_workspace(Workspace(TWO, "rg-two", "ws-one"))
    search = payload.options(spec(tmp_path, TEMPLATE))

    def found(**changes: str | None) -> Workspace:
        return Search(desk.azure.session, replace(search, **changes), desk.chosen).workspace  # type: ignore[arg-type]

    with pytest.raises(UserError, match="2 workspaces are called ws-one"):
        found()
    assert found(subscription_id=TWO) == other
    assert found(subscription_id=ONE, resource_group="rg-one") == WORKSPACE
    desk.chosen = Chosen(Wish("WS-One", ONE, "rg-one"))
    assert found() == Workspace(ONE, "rg-one", "WS-One")
    desk.chosen = Chosen(Wish("ws-one", ONE, "rg-one"))
    assert found(subscription_id="elsewhere", resource_group="rg-x") == WORKSPACE
    assert found(subscription_id=TWO, resource_group="rg-two") == other


# Images and identities


@pytest.mark.rule("A-094", "A-036")
def test_an_alias_must_be_one_that_is_known(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    desk.azure.arm.images[ONE] = [{"names": ["acpt", "acpt:20240101"]}]
    desk.azure.arm.images[TWO] = [{"names": ["other:1"]}]
    template = TEMPLATE.replace("image: train:1", "image: amlt-sing/acpt:20240101")
    desk.chosen = Chosen(placeholder_image="stand-in:1")
    request = plan(desk, spec(tmp_path, template))
    assert request.planned.image.name == "stand-in:1"
    with pytest.raises(NotFound) as error:
        plan(desk, spec(tmp_path, TEMPLATE.replace("image: train:1", "image: amlt-sing/acptt:20240101")))
    assert error.value.message == "Singularity has no image called acptt:20240101"
    assert error.value.hint == "the nearest are `acpt:20240101`, `acpt`, `other:1`"


@pytest.mark.rule("A-094")
def test_an_alias_that_cannot_be_checked_is_a_warning(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    template = TEMPLATE.replace("image: train:1", "image: amlt-sing/acpt")
    desk.azure.arm_server.on(f"{TWO}/providers/Microsoft.Singularity", problem(403, "AuthorizationFailed", "no"))
    plan(desk, spec(tmp_path, template))
    assert desk.said(Kind.WARNING)[0].startswith(f"whether there is an image acpt could not be checked: {TWO}: ")
    desk.azure.arm.images[ONE] = [{"names": ["acpt"]}]
    desk.steps.clear()
    desk.azure.arm_server.on(f"{TWO}/providers/Microsoft.Singularity", problem(403, "AuthorizationFailed", "no"))
    plan(desk, spec(tmp_path, template))
    assert len(desk.said(Kind.WARNING)) == 1, "somebody knows it"


@pytest.mark.rule("A-125", "A-032")
def test_an_identity_must_be_attached_to_the_workspace(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    spelled = UAI.replace("resourceGroups", "resourcegroups")
    wants = TEMPLATE.replace("NCCL_DEBUG: WARN", f"_AZUREML_SINGULARITY_JOB_UAI: {spelled}")
    body = plan(desk, spec(tmp_path, wants)).body
    env = body["properties"]["environmentVariables"]  # type: ignore[call-overload,index]
    assert (env["AZURE_CLIENT_ID"], env["DEFAULT_IDENTITY_CLIENT_ID"]) == (CLIENT, CLIENT)
    with pytest.raises(Refused) as error:
        plan(desk, spec(tmp_path, TEMPLATE.replace("NCCL_DEBUG: WARN", f"_AZUREML_SINGULARITY_JOB_UAI: {UAI}2")))
    assert error.value.message == f"the identity {UAI}2 is not attached to workspace {WORKSPACE} (attached: {UAI})"
    found = desk.azure.arm.resources[WORKSPACE.id.lower()]
    changed = copy.deepcopy(found)
    for one in changed["identity"]["userAssignedIdentities"].values():
        one["clientId"] = "$(rm -rf /)"
    desk.azure.arm.resources[WORKSPACE.id.lower()] = changed
    with pytest.raises(Refused, match="has no usable client id"):
        plan(desk, spec(tmp_path, wants))


# What became of it


@pytest.mark.rule("A-128")
def test_the_same_request_twice_is_one_job(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    first, second = sing(desk).submit(request), sing(desk).submit(request)
    assert first == second
    sent(desk.azure)  # one body alone was put
    assert targets(desk.azure)[-1] == f"GET {NAME}"


@pytest.mark.rule("A-128")
def test_a_foreign_job_of_that_name_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    foreign = copy.deepcopy(dict(request.body))
    foreign["properties"]["properties"] = {"aj_id": "ffffffff"}  # type: ignore[call-overload,index]
    desk.azure.arm.resources[f"{WORKSPACE.id}/jobs/{NAME}".lower()] = {"id": "x", "name": NAME, **foreign}
    with pytest.raises(Refused) as error:
        sing(desk).submit(request)
    assert error.value.message == f"there is a job {NAME} already, of the AJ ID ffffffff: it is left alone"
    with pytest.raises(Refused):
        sing(desk).find(spec(tmp_path, TEMPLATE))


@pytest.mark.rule("A-128")
def test_name_and_address_are_those_of_the_answer(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    answered = copy.deepcopy(dict(request.body))
    answered["properties"]["services"] = {"Studio": {"endpoint": "https://studio.example/x"}}  # type: ignore[call-overload,index]
    path = f"{WORKSPACE.id}/jobs/{NAME}"
    desk.azure.arm_server.on(f"PUT {path}", Answer(201, {"id": path, "name": NAME, **answered}))
    made = sing(desk).submit(request)
    assert (made.name, made.portal_url) == (NAME, "https://studio.example/x")
    assert handle.parse(str(made)) == made, "the address is no part of what a handle is"


@pytest.mark.rule("A-180", "A-205", "A-003")
@pytest.mark.parametrize(
    ("cut", "has_arrived"),
    [
        (Cut.AFTER_BODY, True),
        (Cut.MID_ANSWER, True),
        (Cut.AFTER_HEADERS, False),
        (problem(500, "Oops", "down"), False),
    ],
)
def test_a_lost_answer_is_unknown_and_nothing_is_sent_again(
    desk: Desk, tmp_path: Path, cut: Cut | Answer, has_arrived: bool
) -> None:
    worked_example(desk.azure)
    one = spec(tmp_path, TEMPLATE)
    request = plan(desk, one)
    desk.azure.arm_server.on(f"PUT {WORKSPACE.id}/jobs/", cut)
    with pytest.raises(OutcomeUnknown) as error:
        sing(desk).submit(request)
    assert error.value.message == f"the answer to the submission of {NAME} was lost; it may be running"
    details = error.value.details
    assert (details["backend"], details["workspace"], details["job"]) == ("sing", WORKSPACE.id, NAME)
    assert "at" in details
    puts = [words for words in mutations(desk.azure) if "/jobs/" in words]
    assert len(puts) <= 1, "never replayed"
    there = Handle("sing", f"{ONE}/rg-one/ws-one", NAME)
    assert sing(desk).find(one) == (there if has_arrived else None)


@pytest.mark.rule("A-180")
def test_an_answer_that_nobody_understands_is_unknown(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    for answer in (Answer(200, {"properties": {}}), Answer(200, raw=b"fine")):
        request = plan(desk, spec(tmp_path, TEMPLATE))
        desk.azure.arm_server.on(f"PUT {WORKSPACE.id}/jobs/", answer)
        with pytest.raises(OutcomeUnknown):
            sing(desk).submit(request)


@pytest.mark.rule("A-086")
def test_a_refusal_comes_with_the_numbers_of_the_choice(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    desk.azure.arm_server.on(f"PUT {WORKSPACE.id}/jobs/", problem(400, "QuotaExceeded", "no room"))
    with pytest.raises(RemoteError) as error:
        sing(desk).submit(request)
    assert error.value.message == (
        f"could not submit job {NAME}: QuotaExceeded: no room (chosen by: 8 needed; H100v5 in westus3: "
        "16 left at Premium, 16 left of the user)"
    )
    assert error.value.details["left"] == (
        PACKED.archive,
        PACKED.bootstrap,
        f"environment aj:{commandjob.environment_version('train:1')}",
        f"datastore {commandjob.datastore('small', 'sadata', 'data')}",
    )
    assert not isinstance(error.value, Unavailable)


@pytest.mark.rule("A-003", "A-127")
@pytest.mark.parametrize(
    "trouble", [Unavailable("the store is down"), OutcomeUnknown("lost"), RemoteError("odd"), Refused("no")]
)
def test_whatever_fails_before_the_job_is_a_plain_failure(desk: Desk, tmp_path: Path, trouble: AjError) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    desk.courier = Courier(trouble=trouble)
    with pytest.raises(AjError) as error:
        sing(desk).submit(request)
    assert not isinstance(error.value, OutcomeUnknown | Unavailable)
    assert trouble.message in error.value.message
    assert mutations(desk.azure) == []


@pytest.mark.rule("A-003")
def test_a_throttled_submission_is_a_plain_failure(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    desk.azure.arm_server.on(f"PUT {WORKSPACE.id}/jobs/", problem(429, "TooMany", "later"))
    with pytest.raises(RemoteError, match="nothing was submitted") as error:
        sing(desk).submit(request)
    assert not isinstance(error.value, Unavailable)


def test_code_at_another_place_is_noticed(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    request = plan(desk, spec(tmp_path, TEMPLATE))
    desk.courier = Courier(elsewhere=True)
    with pytest.raises(AjError, match=r"the code was brought to LocalUpload/x/code\.tar\.gz"):
        sing(desk).submit(request)


def test_a_job_needs_code_a_name_and_an_experiment(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs packed code"):
        sing(desk).plan(spec(tmp_path, TEMPLATE), None, accepted_at=AT)
    for broken in (spec(tmp_path, TEMPLATE, name="-"), spec(tmp_path, TEMPLATE, experiment=None)):
        with pytest.raises(UserError):
            plan(desk, broken)
    with pytest.raises(UserError, match="8xH100"):
        plan(desk, spec(tmp_path, TEMPLATE, sku="8xH100"))
    assert desk.azure.arm_server.got == []


# Looking again


@pytest.mark.rule("A-181")
def test_a_job_is_found_where_it_was_sent_even_if_the_settings_changed(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    desk.azure.add_workspace(Workspace(TWO, "rg-two", "ws-two"))
    bare = spec(tmp_path, TEMPLATE.replace(" workspace_name: ws-one,", ""))
    desk.chosen = Chosen(Wish("ws-one", ONE, "rg-one"))
    made = submit(desk, bare)
    desk.chosen = Chosen(Wish("ws-two", TWO, "rg-two"))
    assert sing(desk).find(bare) == made


@pytest.mark.rule("A-181", "A-182")
def test_a_submission_that_broke_off_after_its_plan_is_certainly_absent(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    one = spec(tmp_path, TEMPLATE)
    plan(desk, one)
    assert sing(desk).find(one) is None


@pytest.mark.rule("A-181")
def test_without_a_memory_an_absence_is_not_believed(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    one = spec(tmp_path, TEMPLATE)
    with pytest.raises(OutcomeUnknown, match="whether it was sent there is not remembered"):
        sing(desk).find(one)
    made = submit(desk, one)
    desk.folder = tmp_path / "empty"
    assert sing(desk).find(one) == made


@pytest.mark.rule("A-161")
def test_a_job_is_looked_at_and_ended_by_its_handle(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    made = submit(desk, spec(tmp_path, TEMPLATE))
    status = sing(desk).status(made)
    assert status is not None
    assert (status.state, status.words) == (JobState.QUEUED, "NotStarted")
    sing(desk).cancel(made)
    key = f"{WORKSPACE.id}/jobs/{NAME}".lower()
    assert desk.azure.arm.resources[key]["properties"]["status"] == "CancelRequested"
    desk.azure.arm.resources[key]["properties"]["status"] = "Canceled"
    sing(desk).cancel(made)
    status = sing(desk).status(made)
    assert status is not None
    assert status.state is JobState.TERMINATED
    assert sing(desk).status(Handle("sing", made.place, "other")) is None


@pytest.mark.rule("A-019")
def test_the_tenant_goes_along_with_the_handle(desk: Desk, tmp_path: Path) -> None:
    worked_example(desk.azure)
    made = submit(desk, spec(tmp_path, TEMPLATE.replace("{service: sing,", "{service: sing, tenant_id: t-one,")))
    assert made.place == f"t-one/{ONE}/rg-one/ws-one"
    assert set(desk.tenants) == {"t-one"}
    desk.tenants.clear()
    sing(desk).status(handle.parse(str(made)))
    assert desk.tenants == ["t-one"]
    desk.chosen = Chosen(tenant="t-two")
    plan(desk, spec(tmp_path, TEMPLATE))
    assert desk.tenants[-1] == "t-two"


def test_a_handle_of_another_form_is_none_of_ours() -> None:
    with pytest.raises(NotFound):
        submission.at("jobs")
    with pytest.raises(NotFound):
        submission.at("a/b/c/d/e")
