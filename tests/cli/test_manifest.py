"""aj run -d --show manifest: the objects that a cluster would get, byte for byte what a submission sends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from aj.backend.volcano import payload, program
from aj.cli import dryrun
from aj.cli import spec as specs
from tests.cli.conftest import Ran, Shell
from tests.conftest import RunningDaemon
from tests.servers import kube

GANG = """base:
config:
  target: {service: volcano, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: "registry.example/train:1", setup: ["echo $(id)", "true"]}
  jobs:
  - instance_count: 2
    sku: "{nodes}x80G{processes}-H100"
    submit_args:
      env: {AMLT_PERSISTENT_VOLUME_NAME: team-data, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/shared, HF_TOKEN: s3cret}
"""
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: lab
contexts:
- {name: lab, context: {cluster: lab, user: me, namespace: theirs}}
- {name: bare, context: {cluster: lab, user: me}}
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: t0ken}}]
"""


def objects(ran: Ran) -> list[dict[str, object]]:
    assert ran.code == 0, ran.err
    return list(yaml.safe_load_all(ran.out))


@pytest.fixture
def ready(aj: Shell) -> Shell:
    aj.template("gang", GANG)
    aj.write("train.py", "print('hello')\n")
    path = aj.write("kubeconfig", KUBECONFIG)
    return Shell(aj.home.having(KUBECONFIG=str(path)), aj.directory)


def shown(shell: Shell, *words: str) -> Ran:
    return shell("run", "-d", "--show", "manifest", "-t", "gang", *words, "train.py")


@pytest.mark.rule("V-030", "C-176", "C-178")
def test_a_submission_sends_what_the_dry_run_printed(
    aj: Shell, daemon: RunningDaemon, loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kube.running(tmp_path / "cluster") as cluster:
        home = aj.home.having(PATH=f"{sys.prefix}/bin:/usr/bin:/bin", KUBECONFIG=str(cluster.config))
        shell = Shell(home, aj.directory)
        shell.template("gang", GANG)
        shell.write("train.py", "print('hello')\n")
        ran = shell("run", "-t", "gang", "--output", "json", "train.py")
        assert ran.code == 0, ran.err
        (sent,) = (got for got in cluster.requests("POST", "/jobs?") if got.value("dryRun") is None)
        variables = json.loads(sent.body)["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"]
        moment = {one["name"]: one.get("value") for one in variables}["AJ_SUBMIT_TIMESTAMP_UTC"]
        monkeypatch.setattr(specs, "draw_id", lambda: ran.json["item"]["id"])
        monkeypatch.setattr(dryrun, "_now", lambda ctx: moment)
        (job,) = objects(shown(shell, "--show-env"))
    assert payload.written(job) == sent.body  # type: ignore[arg-type]


@pytest.mark.rule("C-179")
def test_secrets_of_variables_are_masked_and_lines_stand_as_lines(ready: Shell) -> None:
    ran = shown(ready)
    (job,) = objects(ran)
    text = json.dumps(job)
    assert "s3cret" not in text
    assert '{"name": "HF_TOKEN", "value": "***"}' in text
    assert json.dumps(program.argument()) in text
    assert "          - |\n            aj_say() {\n" in ran.out
    assert "s3cret" in shown(ready, "--show-env").out


@pytest.mark.rule("V-002")
@pytest.mark.parametrize(
    ("words", "namespace", "told"),
    [
        ("", "theirs", "context lab, namespace theirs (the context lab names it)"),
        ("context: bare", "default", "context bare, namespace default (the context bare names none)"),
        ("namespace: mine", "mine", "context lab, namespace mine (as asked)"),
        ("context: nope", "<resolved at submission>", "no context called nope"),
        ("context: nope, namespace: mine", "mine", "no context called nope"),
    ],
)
def test_the_namespace_is_told_and_why(ready: Shell, words: str, namespace: str, told: str) -> None:
    ready.template(
        "gang", GANG.replace("service: volcano", f"service: volcano, {words}" if words else "service: volcano")
    )
    ran = shown(ready)
    (job,) = objects(ran)
    assert job["metadata"]["namespace"] == namespace  # type: ignore[index]
    assert told in ran.err


@pytest.mark.rule("V-030", "V-072", "C-178")
def test_a_secret_is_shown_without_its_data_and_before_the_job(ready: Shell) -> None:
    ready.template("gang", GANG + "  storage: {data: {storage_account_name: account1, container_name: cont1}}\n")
    secret, job = objects(shown(ready))
    assert (secret["kind"], secret["data"], job["kind"]) == ("Secret", {"storage.data": "<redacted>"}, "Job")
    ran = ready("run", "-d", "--show", "manifest", "-t", "gang", "-o", "json", "train.py")
    assert [one["kind"] for one in ran.json["item"]["manifest"]] == ["Secret", "Job"]


@pytest.mark.rule("C-178")
def test_a_service_without_objects_has_no_such_view(ready: Shell) -> None:
    ready.template("local", "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n")
    ran = ready("run", "-d", "--show", "manifest", "-t", "local", "train.py")
    assert ran.code == 2
    assert "`local` has no view `manifest`" in ran.err
    other = ready("run", "-d", "--show", "body", "-t", "gang", "train.py")
    assert "it has argv, files, manifest" in other.err
