"""The YAML for amlt, which is also what a dry run writes."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import yaml as pyyaml

from aj.backend.amlt import payload
from aj.model import job as jobs
from aj.model.json import Json
from tests.template.kit import EXAMPLES, ID, SING, built

Plain = dict[str, Json]

TEMPLATE = """base:
config:
  description: costs $5 and $$x
  target: {service: sing, gpus_per_node: 8}
  environment: {image: train:1, setup: ["echo $HOME"]}
  code: {local_dir: $CONFIG_DIR/../.., ignore: [x]}
  search: {a: [1, 1.10, yes, 0123]}
  _extra: {mine: {x: 1}}
  jobs:
  - description: first
    sku: "{nodes}x80G{processes}"
    name: old
    instance_count: 2
    preemptible: true
    command: [cd $CONFIG_DIR, "echo ${CONFIG_DIR}"]
    submit_args:
      env: {V: 1.10, D: 2024-01-01, N: 0123, T: true, X: null}
      container_args: {shm_size: 64g}
  - name: second
    sku: G1
"""


@pytest.mark.rule("C-255", "C-177", "A-190")
def test_the_first_job_is_laid_over_and_all_else_passes(tmp_path: Path) -> None:
    spec = built(tmp_path, TEMPLATE, "python", "train.py", "a b", "$HOME").spec
    found = payload.document(spec)
    assert list(found) == ["description", "target", "environment", "code", "search", "jobs"]
    first, second = cast(list[Plain], found["jobs"])
    assert first == {
        "description": "first",
        "sku": "2x80G8",
        "name": f"{tmp_path.name.strip('_')}_{ID}",
        "instance_count": 2,
        "preemptible": True,
        "command": ["cd $CONFIG_DIR", "echo $${CONFIG_DIR}", "python train.py 'a b' '$$HOME'"],
        "submit_args": {
            "env": {"V": "1.10", "D": "2024-01-01", "N": "0123", "T": "true"},
            "container_args": {"shm_size": "64g"},
        },
        "process_count_per_node": 1,
    }
    assert second == {"name": "second", "sku": "G1"}
    assert found["environment"] == {"image": "train:1", "setup": ["echo $$HOME"]}
    assert found["code"] == {"local_dir": "$CONFIG_DIR/../..", "ignore": ["x"]}
    assert found["description"] == "costs $$5 and $$x"


@pytest.mark.rule("C-255", "C-312")
def test_the_text_means_the_same_to_an_old_reader(tmp_path: Path) -> None:
    spec = built(tmp_path, TEMPLATE, "echo").spec
    text = payload.text(spec)
    assert pyyaml.safe_load(text) == payload.document(spec)
    assert "_extra" not in text
    assert "D: '2024-01-01'" in text


@pytest.mark.rule("C-162", "C-163", "C-164", "C-166", "C-167", "C-168", "C-169")
def test_the_whole_environment_may_stand_there(tmp_path: Path) -> None:
    spec = built(tmp_path, TEMPLATE, "echo").spec
    ours = jobs.injected(spec, accepted_at="2026-01-31T12:00:00.000000+00:00", digest=None, archive_sha256=None)
    first = cast(list[Plain], payload.document(spec, {**spec.env, **ours})["jobs"])[0]
    env = cast(Plain, cast(Plain, first["submit_args"])["env"])
    assert (env["AJ_ID"], env["AJ_NODES"], env["AJ_PROCESSES"], env["AJ_GPUS_PER_NODE"]) == (ID, "2", "16", "8")
    assert (env["AJ_WORLD_SIZE"], env["AJ_TEMPLATE"], env["V"]) == ("2", "t", "1.10")


@pytest.mark.rule("C-255")
@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("$", "$$"),
        ("$$", "$$"),
        ("$$$", "$$$$"),
        ("$CONFIG_DIR", "$CONFIG_DIR"),
        ("$CONFIG_DIRS", "$$CONFIG_DIRS"),
        ("$x$CONFIG_DIR/$", "$$x$CONFIG_DIR/$$"),
    ],
)
def test_dollars_are_doubled_but_for_two_forms(tmp_path: Path, text: str, due: str) -> None:
    spec = built(tmp_path, SING + f"  description: '{text}'\n").spec
    assert payload.document(spec)["description"] == due


@pytest.mark.rule("C-177")
def test_tasks_stand_resolved_under_a_key_of_their_own(tmp_path: Path) -> None:
    spec = built(tmp_path, "base:\n" + (EXAMPLES / "heterogeneous.yaml").read_text(), "python", "train.py").spec
    found = payload.document(spec)
    tasks = cast(dict[str, Plain], found["aj_tasks"])
    assert list(tasks) == ["master", "a100-worker", "h100-worker"]
    assert tasks["a100-worker"]["command"] == ["python train.py"]
    assert tasks["h100-worker"]["command"] == ["python h100_train.py"]
    assert cast(list[Plain], found["jobs"])[0]["instance_count"] == 7
    assert "_extra" not in found


def test_a_job_without_a_template_has_a_document_too(tmp_path: Path) -> None:
    spec = built(tmp_path, "base:\nconfig:\n  target: {service: local}\n  jobs: [{instance_count: 1}]\n", "echo").spec
    first = cast(list[Plain], payload.document(spec)["jobs"])[0]
    assert "sku" not in first
    assert first["command"] == ["echo"]
