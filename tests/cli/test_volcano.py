"""Jobs on a cluster as a user meets them: `aj run` through a real daemon, then every command that takes a job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aj.store import journal
from tests.cli.conftest import Ran, Shell
from tests.conftest import RunningDaemon
from tests.servers import kube

TEMPLATE = """base:
config:
  target: {service: volcano, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: "registry.example/train:1"}
  jobs:
  - instance_count: 2
    sku: "{nodes}x80G{processes}-H100"
    submit_args:
      env: {AMLT_PERSISTENT_VOLUME_NAME: team-data, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/shared}
"""


@dataclass
class Typed:
    """A user's shell in a project, with a daemon of its own and a cluster in reach."""

    shell: Shell
    cluster: kube.Cluster

    def __call__(self, *words: str, code: int = 0) -> Ran:
        ran = self.shell(*words)
        assert ran.code == code, (ran.err, ran.out)
        return ran

    def run(self, *words: str) -> str:
        """Submit; return the AJ ID."""
        ran = self("run", "-t", "gang", "--output", "json", *words, "train.py")
        return str(ran.json["item"]["id"])

    def name(self) -> str:
        """The name of the one job that is there."""
        (name,) = self.cluster.kube.names("jobs")
        return name

    def log(self, pod: str, *lines: tuple[str, str]) -> None:
        log = self.cluster.nodes.log(kube.NAMESPACE, f"{self.name()}-{pod}", "main")
        with log.changed:
            log.lines += list(lines)
            log.changed.notify_all()


@pytest.fixture
def typed(aj: Shell, daemon: RunningDaemon, loopback: None, tmp_path: Path) -> Iterator[Typed]:
    with kube.running(tmp_path / "cluster") as cluster:
        home = aj.home.having(PATH=f"{sys.prefix}/bin:/usr/bin:/bin", KUBECONFIG=str(cluster.config))
        shell = Shell(home, aj.directory)
        shell.template("gang", TEMPLATE)
        shell.write("train.py", "print('hello')\n")
        yield Typed(shell, cluster)


@pytest.mark.rule("V-100", "V-061", "V-063", "V-068", "V-118")
def test_a_run_brings_the_code_and_makes_one_job(typed: Typed) -> None:
    aj_id = typed.run()
    name = typed.name()
    job = typed.cluster.kube.stored("jobs", name)
    assert name.startswith(f"project-train-{aj_id}-")
    assert job["metadata"]["labels"]["aj-id"] == aj_id
    assert job["spec"]["minAvailable"] == 2
    assert typed.cluster.kube.names("pods") == []  # the helper has gone
    layout, key = typed.shell.home.layout, typed.shell.home.project().key
    records = [record for record in journal.read(layout, key, lambda _: None) if record.id == aj_id]
    assert records[-1].state == "submitted"
    assert records[-1].handle == f"volcano://lab/training/{name}"
    assert records[-1].azure_name == name
    (listed,) = typed("list", "--output", "json").json["items"]
    assert (listed["id"], listed["azure_name"]) == (aj_id, name)


@pytest.mark.rule("V-094", "V-118", "V-129")
def test_a_job_is_shown_waited_for_and_its_failure_explained(typed: Typed) -> None:
    aj_id = typed.run()
    shown = typed("status", aj_id, "--output", "json").json["item"]["cloud"]
    assert (shown["state"], shown["status"], shown["service"]) == ("queued", "Pending", "volcano")
    assert (shown["workspace"], shown["nodes"], shown["gpus"]) == ("lab/training", 2, 8)
    typed.cluster.play(typed.name(), "Running")
    assert typed("status", aj_id, "--output", "json").json["item"]["cloud"]["state"] == "running"
    typed.cluster.nodes.become(
        typed.cluster.kube.stored("pods", f"{typed.name()}-worker-0"), kube.ended(137, "OOMKilled")
    )
    typed.cluster.play(typed.name(), "Failed")
    ran = typed("wait", aj_id, code=1)
    assert "errored (Failed)" in ran.out
    status = typed("status", aj_id, "--output", "json").json["item"]["cloud"]
    assert status["state"] == "errored"
    assert status["error"].startswith("worker-0 failed on node node-1: exit 137 (OOMKilled)")


@pytest.mark.rule("V-114", "V-118")
def test_logs_are_those_of_the_pods(typed: Typed) -> None:
    aj_id = typed.run()
    typed.cluster.play(typed.name(), "Running")
    typed.log("master-0", ("2026-01-01T00:00:01.5Z", "step 1"), ("2026-01-01T00:00:01.5Z", "step 2"))
    typed.log("worker-0", ("2026-01-01T00:00:02Z", "worker here"))
    assert typed("logs", aj_id).out == "step 1\nstep 2\n"
    assert typed("logs", aj_id, "--rank", "1").out == "worker here\n"
    assert typed("logs", aj_id, "--file", "worker-0").out == "worker here\n"
    assert typed("logs", aj_id, "--tail", "1").out == "step 2\n"
    listed = typed("logs", aj_id, "--list", "--output", "json").json["items"]
    assert [one["path"] for one in listed] == ["rank_0/master-0", "rank_1/worker-0"]
    typed.cluster.play(typed.name(), "Completed")
    assert typed("logs", aj_id, "-f", "--all").out == "step 1\nstep 2\nworker here\n"


@pytest.mark.rule("V-116", "V-118")
def test_a_job_that_is_terminated_is_remembered_when_its_cluster_has_forgotten_it(typed: Typed) -> None:
    aj_id = typed.run()
    typed.cluster.play(typed.name(), "Running")
    name = typed.name()
    assert "ok" in typed("terminate", aj_id, "--wait").out
    assert typed.cluster.kube.names("jobs") == []
    (patch,) = typed.cluster.requests("PATCH", "/jobs/")
    assert b"aj-cancelled" in patch.body
    ran = typed("status", aj_id, "--output", "json")
    assert (ran.json["item"]["cloud"]["state"], ran.json["item"]["cloud"]["name"]) == ("terminated", name)
    assert "its cluster has forgotten it" in ran.err + str(ran.json)
    assert "noop" in typed("terminate", aj_id).out
    assert len(typed.cluster.requests("DELETE", "/jobs/")) == 1


@pytest.mark.rule("V-118")
def test_why_a_gang_waits_is_told_with_numbers(typed: Typed) -> None:
    queue = typed.cluster.kube.stored("queues", "default")
    queue["spec"]["capability"] = {"nvidia.com/gpu": "64"}
    queue["status"] = {"state": "Open", "allocated": {"nvidia.com/gpu": "60"}}
    typed.cluster.nodes.fate("-worker-0", kube.unschedulable("0/5 nodes are available: 5 Insufficient nvidia.com/gpu."))
    typed.cluster.nodes.fate("-master-0", kube.no_image())
    aj_id = typed.run()
    typed.cluster.play(typed.name(), "Running")
    typed.cluster.play(typed.name(), "Pending")
    reasons = [row["reason"] for row in typed("job", "why", aj_id, "--output", "json").json["items"]]
    assert any(
        reason.startswith("queue: nvidia.com/gpu of default: 60 of 64 in use, the job wants 16") for reason in reasons
    )
    assert any(reason.startswith("nodes: worker-0: 0/5 nodes are available") for reason in reasons)
    assert any(reason.startswith("image: master-0: ImagePullBackOff") for reason in reasons)
    assert [reason.partition(":")[0] for reason in reasons] == sorted(
        (reason.partition(":")[0] for reason in reasons),
        key=["gang", "queue", "quota", "nodes", "image", "volume"].index,
    )


@pytest.mark.rule("V-118")
def test_a_cluster_that_cannot_be_reached_is_told_with_the_line_that_asks_by_hand(typed: Typed) -> None:
    aj_id = typed.run()
    name = typed.name()
    typed.cluster.server.hangs_up = True
    line = f"kubectl --context lab -n training get jobs.batch.volcano.sh {name}"
    assert line in typed("status", aj_id, code=1).err
    assert f"kubectl --context lab -n training logs -l volcano.sh/job-name={name}" in typed("logs", aj_id, code=1).err
    typed.cluster.server.hangs_up = False
    typed("status", aj_id)


@pytest.mark.rule("V-101", "V-102", "V-128")
def test_a_lost_answer_is_settled_by_reconcile(typed: Typed) -> None:
    typed.cluster.server.on("/jobs?fieldValidation=Strict&dryRun", kube.Answer(201, {"kind": "Job"}))
    typed.cluster.server.on("POST /apis/batch.volcano.sh/v1alpha1/namespaces/training/jobs?", kube.Undone())
    ran = typed("run", "-t", "gang", "train.py", code=6)
    assert "was lost; not seen yet" in ran.err
    ticket = ran.err.partition("aj queue reconcile ")[2].split("`")[0]
    settled = typed("queue", "reconcile", ticket, "--output", "json", code=0)
    assert "never-arrived" in settled.out
    assert typed.cluster.kube.names("jobs") == []


def test_a_context_that_is_not_there_is_told_with_those_that_are(typed: Typed) -> None:
    typed.shell.template("gang", TEMPLATE.replace("service: volcano", "service: volcano, context: prod"))
    ran = typed("run", "-t", "gang", "train.py", code=2)
    assert f"no context called prod in {typed.cluster.config} (has: lab)" in ran.err
