"""The body of a job for a compute: one known template yields one exact body, and the service may take it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aj.backend.aml import payload
from aj.backend.aml.payload import Facts
from aj.base.errors import TemplateError
from aj.model import commandjob
from aj.model.commandjob import UNSETTLED
from tests.backend.azure import AT, BOOTSTRAP_SHA256, CODE, PACKED, spec
from tests.servers.arm import ARM_KINDS

TEMPLATE = """base:
config:
  target: {service: aml, name: gpu-cluster, gpus_per_node: 1}
  environment: {registry: registry.example, image: train:1}
  jobs:
  - sku: G1
    instance_count: 1
    description: a first try
    timeout: 1h30m
    tags: [team:research]
    submit_args:
      env: {NCCL_DEBUG: WARN}
"""
WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/ws"
COMPUTE = f"{WORKSPACE}/computes/gpu-cluster"
ENVIRONMENT = f"{WORKSPACE}/environments/aj/versions/{commandjob.environment_version('registry.example/train:1')}"
FACTS = Facts("public", COMPUTE, ENVIRONMENT)
PATHS = "azureml://datastores/workspaceblobstore/paths/LocalUpload"
GOLDEN: dict = {
    "properties": {
        "jobType": "Command",
        "displayName": "pretrain_0a1b2c3d",
        "description": "a first try",
        "experimentName": "aj",
        "command": "bash ${{inputs.aj_bootstrap}} ${{inputs.aj_code_archive}}",
        "computeId": COMPUTE,
        "environmentId": ENVIRONMENT,
        "environmentVariables": {
            "NCCL_DEBUG": "WARN",
            "AJ_ID": "0a1b2c3d",
            "AJ_NAME": "pretrain_0a1b2c3d",
            "AJ_TEMPLATE": "t",
            "AJ_SUBMIT_TIMESTAMP_UTC": AT,
            "AJ_NODES": "1",
            "AJ_PROCESSES": "1",
            "AJ_WORLD_SIZE": "1",
            "AJ_GPUS_PER_NODE": "1",
            "AJ_PROCESSES_PER_NODE": "1",
            "AJ_CODE_DIGEST": CODE.digest,
            "AJ_CODE_ARCHIVE_SHA256": CODE.archive_sha256,
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
        "identity": {"identityType": "Managed"},
        "resources": {"instanceCount": 1},
        "limits": {"jobLimitsType": "Command", "timeout": "PT5400S"},
        "tags": {"team": "research", "aj_id": "0a1b2c3d"},
        "properties": {"aj_id": "0a1b2c3d"},
    }
}


def properties(root: Path, template: str) -> dict:
    one = spec(root, template)
    found = payload.build(one, payload.options(one), PACKED, FACTS, accepted_at=AT)
    assert ARM_KINDS.faults("JobBase", found, sent=True) == []
    return found["properties"]  # type: ignore[return-value]


@pytest.mark.rule("A-121", "A-126", "A-090")
def test_one_template_yields_one_exact_body(tmp_path: Path) -> None:
    one = spec(tmp_path, TEMPLATE)
    found = payload.build(one, payload.options(one), PACKED, FACTS, accepted_at=AT)
    assert found == GOLDEN
    assert json.dumps(found) == json.dumps(GOLDEN)
    assert ARM_KINDS.faults("JobBase", GOLDEN, sent=True) == []
    assert payload.image(one) == "registry.example/train:1"


@pytest.mark.rule("A-121")
@pytest.mark.parametrize(
    ("word", "due"),
    [("managed", {"identityType": "Managed"}), ("user", {"identityType": "UserIdentity"}), ("none", None)],
)
def test_the_identity_of_the_job(tmp_path: Path, word: str, due: object) -> None:
    template = TEMPLATE.replace("    description:", f"    identity: {word}\n    description:")
    assert properties(tmp_path, template).get("identity") == due


@pytest.mark.rule("A-057", "A-122")
def test_tier_and_priority_reach_no_body(tmp_path: Path) -> None:
    template = TEMPLATE.replace("    description:", "    sla_tier: Basic\n    priority: Low\n    description:")
    assert properties(tmp_path, template) == GOLDEN["properties"]


@pytest.mark.rule("A-123", "A-151")
def test_shared_memory_and_mounts(tmp_path: Path) -> None:
    template = TEMPLATE.replace(
        "  jobs:", "  storage: {d: {storage_account_name: sadata, container_name: data}}\n  jobs:"
    ).replace("    submit_args:\n", "    submit_args:\n      container_args: {shm_size: 64G}\n")
    found = properties(tmp_path, template)
    assert found["resources"] == {"instanceCount": 1, "shmSize": "64g"}
    assert found["environmentVariables"]["SHM_SIZE"] == "64g"
    assert found["environmentVariables"]["AZUREML_DATAREFERENCE_d"] == "/mnt/d"
    assert list(found["outputs"]) == ["d"]


@pytest.mark.rule("A-142")
def test_the_limit_of_the_setup_travels_with_it(tmp_path: Path) -> None:
    template = TEMPLATE.replace("image: train:1}", "image: train:1, setup: [make], setup_timeout: 15m}")
    found = properties(tmp_path, template)["environmentVariables"]
    assert (found["AJ_SETUP"], found["AJ_SETUP_TIMEOUT"]) == ("make", "900")


@pytest.mark.rule("A-12B")
def test_a_dry_run_differs_only_where_the_service_was_not_asked(tmp_path: Path) -> None:
    shown = payload.preview(spec(tmp_path, TEMPLATE), PACKED, cloud="public", accepted_at=AT)
    filled = json.dumps(GOLDEN)
    for value in (ENVIRONMENT, COMPUTE):
        filled = filled.replace(json.dumps(value), json.dumps(UNSETTLED))
    assert json.dumps(shown) == filled


def test_a_job_without_an_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TemplateError):
        payload.image(spec(tmp_path, TEMPLATE, image=None))
