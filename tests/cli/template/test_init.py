"""aj template init: a template for every service that passes every check, and replaces nothing unasked."""

from __future__ import annotations

import json

import pytest
import yaml

from aj.backend import registry
from aj.cli.template.init import SAMPLES
from tests.cli.conftest import Shell


@pytest.mark.rule("C-140", "C-045")
@pytest.mark.parametrize("service", list(registry.ENTRIES))
def test_the_template_of_every_service_is_clean(aj: Shell, service: str) -> None:
    aj.write("train.py", "print(1)\n")
    dry = aj("template", "init", "--service", service, "-d", "--json")
    assert (dry.code, dry.json["status"]) == (0, "noop")
    seen = aj("template", "init", "--service", service, "--json")
    assert seen.code == 0, seen.err
    text = (aj.directory / ".azure_jobs" / "template" / f"{service}.yaml").read_text()
    assert "# " in text and seen.json["items"][0]["path"].endswith(f"/template/{service}.yaml")
    assert aj("template", "validate", "--strict").out == f"{service}: ok\n"
    shown = aj("run", "-d", "-t", service, "--experiment", "e", "echo")
    assert shown.code == 0, shown.err


@pytest.mark.rule("C-140")
def test_there_is_a_sample_for_every_service() -> None:
    assert {path.stem for path in SAMPLES.iterdir()} == {*registry.ENTRIES} - {"local"}


@pytest.mark.rule("C-140", "C-045")
def test_nothing_is_overwritten_unasked(aj: Shell) -> None:
    mine = aj.template("gpu", "mine\n")
    for words in ((), ("-d",)):
        refused = aj("template", "init", "gpu", *words)
        assert (refused.code, ".azure_jobs/template/gpu.yaml is there" in refused.err) == (5, True)
        assert mine.read_text() == "mine\n"
    assert aj("template", "init", "gpu", "--force", "-d").code == 0
    assert mine.read_text() == "mine\n"
    seen = aj("template", "init", "gpu", "--force")
    assert (seen.code, seen.err) == (0, "kept .azure_jobs/template/gpu.yaml.orig-1\n")
    assert mine.with_name("gpu.yaml.orig-1").read_text() == "mine\n"


@pytest.mark.rule("C-045", "C-140")
def test_values_are_set_and_comments_stay(aj: Shell) -> None:
    pairs = {
        "target.name": "gpu-cluster",
        "target.workspace_name": "ws",
        "environment.image": "me/train:1",
        "environment.setup": "[pip install -e ., 'a # b']",
        "jobs[0].instance_count": "4",
        "jobs[0].sku": "2xG8",
        "jobs[0].submit_args.env.GREETING": "a: b # c",
        "jobs[0].submit_args.env.LEVEL": "1.10",
        "jobs[0].submit_args.container_args.shm_size": "64g",
        "jobs[0].tags": "[team:x]",
    }
    words = [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]
    seen = aj("template", "init", "gpu", "--service", "aml", *words)
    assert seen.code == 0, seen.err
    text = (aj.directory / ".azure_jobs" / "template" / "gpu.yaml").read_text()
    assert "          LEVEL: 1.10\n" in text  # as it was typed
    found = yaml.safe_load(text)["config"]
    assert found["target"] == {"service": "aml", "name": "gpu-cluster", "gpus_per_node": 1, "workspace_name": "ws"}
    assert found["environment"] == {"image": "me/train:1", "setup": ["pip install -e .", "a # b"]}
    job = found["jobs"][0]
    assert (job["instance_count"], job["sku"], job["tags"]) == (4, "2xG8", ["team:x"])
    assert job["submit_args"] == {"env": {"GREETING": "a: b # c", "LEVEL": 1.1}, "container_args": {"shm_size": "64g"}}
    assert "name: gpu-cluster # the compute; its workspace is looked up" in text


@pytest.mark.rule("C-045", "C-140")
def test_what_would_not_be_valid_is_not_written(aj: Shell) -> None:
    for pair, says in (
        ("target.memory=64GB", "memory"),
        ("target.nmae=x", "nmae"),
        ("jobs[0].sku=g8", "g8"),
        ("jobs[1].sku=G8", "no such place"),
        ("jobs.sku=G8", "no such place"),
        ("target..x=1", "no such place"),
        ("=1", "no such place"),
        ("x", "no `=` in it"),
        ("jobs=1", "more than one line"),
    ):
        seen = aj("template", "init", "gpu", "--service", "volcano", "--set", pair)
        assert (seen.code, says in seen.err) == (2, True), seen.err
    for words in (("../x",), ("a/b",), ("x", "--service", "slurm")):
        assert aj("template", "init", *words).code == 2
    assert not list((aj.directory / ".azure_jobs" / "template").iterdir())
    assert json.loads(aj("template", "init", "../x", "--json").out)["error"]["code"] == "bad-name"
