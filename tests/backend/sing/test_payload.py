"""The body of a job of Singularity: one known template yields one exact body, and the service may take it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aj.backend.sing import payload
from aj.backend.sing.payload import Facts
from aj.base.errors import TemplateError
from aj.model import commandjob
from aj.model.commandjob import UNSETTLED
from aj.model.job import JobSpec
from aj.model.json import Json
from tests.backend.azure import AT, BOOTSTRAP_SHA256, CODE, PACKED, spec
from tests.servers.arm import ARM_KINDS

TEMPLATE = """base:
config:
  target: {service: sing, workspace_name: ws-one, gpus_per_node: 4}
  environment: {image: train:1, setup: [pip install -e .]}
  storage: {shared: {storage_account_name: sadata, container_name: data, mount_dir: /mnt/shared}}
  jobs:
  - sku: "{nodes}x80G{processes}-H100-NvLink"
    instance_count: 2
    process_count_per_node: 4
    tags: ["team: research", alone]
    submit_args:
      env: {NCCL_DEBUG: WARN}
      container_args: {shm_size: 64Gi}
"""
SUB = "aaaaaaaa-0000-0000-0000-000000000001"
CLUSTER = (
    f"/subscriptions/{SUB}/resourceGroups/rg-red/providers/Microsoft.MachineLearningServices/virtualclusters/vc-red"
)
ENVIRONMENT = (
    f"/subscriptions/{SUB}/resourceGroups/rg-one/providers/Microsoft.MachineLearningServices/workspaces/ws-one"
    f"/environments/aj/versions/{commandjob.environment_version('train:1')}"
)
UAI = f"/subscriptions/{SUB}/resourceGroups/rg-one/providers/Microsoft.ManagedIdentity/userAssignedIdentities/uai-one"
FACTS = Facts("public", ENVIRONMENT, CLUSTER, ("Singularity.H4_a",), "Premium", None, None)
STORE = commandjob.datastore("public", "sadata", "data")
PATHS = "azureml://datastores/workspaceblobstore/paths/LocalUpload"
GOLDEN: dict = {
    "properties": {
        "jobType": "Command",
        "displayName": "pretrain_0a1b2c3d",
        "experimentName": "aj",
        "command": "bash ${{inputs.aj_bootstrap}} ${{inputs.aj_code_archive}}",
        "computeId": CLUSTER,
        "environmentId": ENVIRONMENT,
        "environmentVariables": {
            "SHM_SIZE": "64g",
            "SUDO": "sudo",
            "AZCOPY_AUTO_LOGIN_TYPE": "MSI",
            "JOB_EXECUTION_MODE": "Basic",
            "AZUREML_COMPUTE_USE_COMMON_RUNTIME": "false",
            "NCCL_DEBUG": "WARN",
            "AZUREML_DATAREFERENCE_shared": "/mnt/shared",
            "AJ_ID": "0a1b2c3d",
            "AJ_NAME": "pretrain_0a1b2c3d",
            "AJ_TEMPLATE": "t",
            "AJ_SUBMIT_TIMESTAMP_UTC": AT,
            "AJ_NODES": "2",
            "AJ_PROCESSES": "8",
            "AJ_WORLD_SIZE": "8",
            "AJ_GPUS_PER_NODE": "4",
            "AJ_PROCESSES_PER_NODE": "4",
            "AJ_CODE_DIGEST": CODE.digest,
            "AJ_CODE_ARCHIVE_SHA256": CODE.archive_sha256,
            "AJ_SETUP": "pip install -e .",
            "AJ_COMMAND": "python train.py",
        },
        "inputs": {
            "aj_bootstrap": {
                "jobInputType": "uri_file",
                "mode": "Download",
                "uri": f"{PATHS}/{BOOTSTRAP_SHA256}/aj_bootstrap.sh",
            },
            "aj_code_archive": {
                "jobInputType": "uri_file",
                "mode": "Download",
                "uri": f"{PATHS}/{CODE.archive_sha256}/code.tar.gz",
            },
        },
        "outputs": {
            "shared": {
                "jobOutputType": "uri_folder",
                "mode": "ReadWriteMount",
                "uri": f"azureml://datastores/{STORE}/paths/",
            }
        },
        "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 4},
        "resources": {
            "instanceCount": 2,
            "shmSize": "64g",
            "properties": {
                "AISuperComputer": {
                    "instanceType": "Singularity.H4_a",
                    "instanceTypes": ["Singularity.H4_a"],
                    "instanceCount": 2,
                    "interactive": False,
                    "imageVersion": "",
                    "slaTier": "Premium",
                    "Priority": "High",
                    "EnableAzmlInt": False,
                    "tensorboardLogDirectory": "/scratch/outputs",
                    "VirtualClusterArmId": CLUSTER,
                }
            },
        },
        "tags": {"team": "research", "alone": "", "aj_id": "0a1b2c3d"},
        "properties": {"aj_id": "0a1b2c3d", "AZURE_ML_OUTPUT_PathOnCompute_shared": "/mnt/shared/"},
    }
}


def build(one: JobSpec, facts: Facts = FACTS) -> dict[str, Json]:
    return payload.build(one, payload.options(one), PACKED, facts, accepted_at=AT)


def properties(root: Path, template: str, facts: Facts = FACTS) -> dict:
    found = build(spec(root, template), facts)
    assert ARM_KINDS.faults("JobBase", found, sent=True) == []
    return found["properties"]  # type: ignore[return-value]


def machine(root: Path, template: str, facts: Facts = FACTS) -> dict:
    return properties(root, template, facts)["resources"]["properties"]["AISuperComputer"]


@pytest.mark.rule("A-12A", "A-121", "A-124", "A-126", "A-150", "A-151")
def test_one_template_yields_one_exact_body(tmp_path: Path) -> None:
    assert build(spec(tmp_path, TEMPLATE)) == GOLDEN
    assert json.dumps(build(spec(tmp_path, TEMPLATE))) == json.dumps(GOLDEN), "the order too: the bytes are the same"


@pytest.mark.rule("A-126", "A-122")
def test_the_body_is_legal_by_the_published_definition() -> None:
    assert ARM_KINDS.faults("JobBase", GOLDEN, sent=True) == []


@pytest.mark.rule("A-126")
@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(codeId="x", dockerArgs="y"),
        lambda p: p["resources"].update(dockerArgs=1),
        lambda p: p["resources"].update(shmSize="64"),
        lambda p: p["environmentVariables"].update(AJ_NODES=2),
        lambda p: p["outputs"]["shared"].update(mode="Mount"),
        lambda p: p["inputs"]["aj_bootstrap"].update(path="x"),
        lambda p: p.update(experiment="aj"),
        lambda p: p.update(distribution={"distributionType": "Torch"}),
    ],
)
def test_a_body_that_is_not_would_be_noticed(change: Callable[[dict], None]) -> None:
    body = copy.deepcopy(GOLDEN)
    change(body["properties"])
    assert ARM_KINDS.faults("JobBase", body, sent=True) != []


@pytest.mark.rule("A-122")
def test_nothing_else_of_a_template_reaches_the_body(tmp_path: Path) -> None:
    more = TEMPLATE.replace(
        "  jobs:\n  - sku", "  odd: {codeId: x, queueSettings: {a: 1}}\n  jobs:\n  - instanceType: Standard_X\n    sku"
    )
    assert build(spec(tmp_path, more)) == GOLDEN


@pytest.mark.rule("A-102", "A-103", "A-101")
def test_a_read_only_mount_is_an_input(tmp_path: Path) -> None:
    found = properties(tmp_path, TEMPLATE.replace("mount_dir: /mnt/shared", "mode: ro"))
    assert "outputs" not in found
    assert found["inputs"]["shared"] == {
        "jobInputType": "uri_folder",
        "mode": "ReadOnlyMount",
        "uri": f"azureml://datastores/{STORE}/paths/",
    }
    assert found["properties"] == {"aj_id": "0a1b2c3d", "AZURE_ML_INPUT_PathOnCompute_shared": "/mnt/shared/"}
    assert found["environmentVariables"]["AZUREML_DATAREFERENCE_shared"] == "/mnt/shared"


@pytest.mark.rule("A-124")
def test_several_types_regions_and_a_policy(tmp_path: Path) -> None:
    facts = Facts("public", ENVIRONMENT, CLUSTER, ("Singularity.a", "Singularity.b"), "Basic", "westus3", None)
    template = TEMPLATE.replace("gpus_per_node: 4}", "gpus_per_node: 4, group_policy: team}").replace(
        "    instance_count: 2", "    instance_count: 2\n    priority: low\n    sla_tier: premium"
    )
    found = machine(tmp_path, template, facts)
    assert found["instanceType"] == "Singularity.a,Singularity.b"
    assert found["instanceTypes"] == ["Singularity.a", "Singularity.b"]
    assert (found["locations"], found["groupPolicyName"]) == (["westus3"], "team")
    assert (found["slaTier"], found["Priority"]) == ("Basic", "Low")


@pytest.mark.rule("A-094", "A-124")
def test_an_image_of_the_services_own_travels_as_its_version(tmp_path: Path) -> None:
    template = TEMPLATE.replace("image: train:1", "image: amlt-sing/acpt-torch2.1:20240101")
    assert machine(tmp_path, template)["imageVersion"] == "acpt-torch2.1:20240101"
    one = spec(tmp_path, template)
    assert payload.image(one, payload.options(one), "stand-in:1") == "stand-in:1"
    plain = spec(tmp_path, TEMPLATE)
    assert payload.image(plain, payload.options(plain), "stand-in:1") == "train:1"
    with pytest.raises(TemplateError):
        payload.image(spec(tmp_path, TEMPLATE, image=None), payload.options(plain), "stand-in:1")


@pytest.mark.rule("A-125")
def test_an_identity_travels_as_variables_alone(tmp_path: Path) -> None:
    template = TEMPLATE.replace(
        "NCCL_DEBUG: WARN", f"NCCL_DEBUG: WARN, AZURE_CLIENT_ID: other, _AZUREML_SINGULARITY_JOB_UAI: {UAI}"
    )
    client = "cccccccc-0000-0000-0000-000000000001"
    found = properties(tmp_path, template, Facts("public", ENVIRONMENT, CLUSTER, ("t",), "Basic", None, client))
    env = found["environmentVariables"]
    assert (env["AZURE_CLIENT_ID"], env["DEFAULT_IDENTITY_CLIENT_ID"]) == (client, client)
    assert env["_AZUREML_SINGULARITY_JOB_UAI"] == UAI
    assert "identity" not in found
    assert client not in found["command"]


@pytest.mark.rule("A-151")
def test_the_users_own_values_stand_above_the_defaults(tmp_path: Path) -> None:
    env = properties(tmp_path, TEMPLATE.replace("NCCL_DEBUG: WARN", "SUDO: '', SHM_SIZE: 1g"))["environmentVariables"]
    assert (env["SUDO"], env["SHM_SIZE"], env["JOB_EXECUTION_MODE"]) == ("", "1g", "Basic")


@pytest.mark.rule("A-150", "C-168")
def test_a_cpu_job_has_no_gpus(tmp_path: Path) -> None:
    template = TEMPLATE.replace("{nodes}x80G{processes}-H100-NvLink", "{nodes}xC{processes}")
    env = properties(tmp_path, template)["environmentVariables"]
    assert (env["AJ_GPUS_PER_NODE"], env["AJ_PROCESSES"]) == ("0", "8")


@pytest.mark.rule("A-12B")
def test_a_dry_run_differs_only_where_the_service_was_not_asked(tmp_path: Path) -> None:
    template = TEMPLATE.replace("NCCL_DEBUG: WARN", f"NCCL_DEBUG: WARN, _AZUREML_SINGULARITY_JOB_UAI: {UAI}")
    one = spec(tmp_path, template)
    client = "cccccccc-0000-0000-0000-000000000001"
    real = build(one, Facts("public", ENVIRONMENT, CLUSTER, ("Singularity.H4_a",), "Premium", None, client))
    shown = payload.preview(one, PACKED, cloud="public", accepted_at=AT)
    filled = json.dumps(real)
    for value in (ENVIRONMENT, CLUSTER, client, "Singularity.H4_a", "Premium"):
        assert json.dumps(value) in filled
        filled = filled.replace(json.dumps(value), json.dumps(UNSETTLED))
    assert json.dumps(shown) == filled
    assert UNSETTLED == "<resolved at submission>"
    assert UNSETTLED not in json.dumps(real)


@pytest.mark.rule("A-142")
def test_the_limit_of_the_setup_travels_with_it(tmp_path: Path) -> None:
    body = build(spec(tmp_path, TEMPLATE.replace("[pip install -e .]}", "[pip install -e .], setup_timeout: 2h}")))
    assert body["properties"]["environmentVariables"]["AJ_SETUP_TIMEOUT"] == "7200"
