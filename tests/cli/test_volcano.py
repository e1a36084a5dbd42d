"""Jobs on a cluster as a user meets them: `aj run` through a real daemon, then every command that takes a job."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM
from aj.store import journal
from tests.cli.conftest import Ran, Shell
from tests.conftest import RunningDaemon
from tests.hasty import hasty as hasty
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

    def run(self, *words: str, **variables: str) -> str:
        """Submit; return the AJ ID."""
        ran = self.shell("run", "-t", "gang", "--output", "json", *words, "train.py", **variables)
        assert ran.code == 0, ran.err
        return str(ran.json["item"]["id"])

    def name(self) -> str:
        """The name of the one job that is there."""
        (name,) = self.cluster.kube.names("jobs")
        return name

    def looked(self, times: int) -> None:
        """Wait until logs were asked for so many times more."""
        wanted, limit = len(self.cluster.requests("GET", "/log")) + times, SYSTEM.monotonic() + 60
        while len(self.cluster.requests("GET", "/log")) < wanted:
            assert SYSTEM.monotonic() < limit, "nobody looks"
            SYSTEM.sleep(0.02)

    def log(self, pod: str, *lines: tuple[str, str]) -> None:
        log = self.cluster.nodes.log(kube.NAMESPACE, f"{self.name()}-{pod}", "main")
        with log.changed:
            log.lines += list(lines)
            log.changed.notify_all()


@pytest.fixture
def typed(
    aj: Shell, hasty: RunningDaemon, loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Typed]:
    for room in ("cloudjobs", "cloudlogs", "k8s"):  # pauses of commands that stay with a job
        monkeypatch.setattr(f"aj.client.{room}.LOOK_S", 0.1)
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


@pytest.mark.rule("T65", "V-114")
def test_a_log_that_is_followed_goes_on_when_its_node_begins_a_new_file(typed: Typed) -> None:
    """What the old file held is not there any more; what comes in the new one may bear the very same moment."""
    aj_id = typed.run()
    typed.cluster.play(typed.name(), "Running")
    moment = "2026-01-01T00:00:01.5Z"
    typed.log("master-0", (moment, "step 1"), (moment, "step 2"))
    heard: list[bytes] = []
    shell = typed.shell
    thread = threading.Thread(target=lambda: heard.append(shell("logs", aj_id, "-f").raw))
    thread.start()
    typed.looked(2)  # the first one brought both lines
    log = typed.cluster.nodes.log(kube.NAMESPACE, f"{typed.name()}-master-0", "main")
    with log.changed:
        log.lines[:] = [(moment, "step 3"), (moment, "step 4"), ("2026-01-01T00:00:09Z", "step 5")]
    typed.looked(2)
    typed.cluster.play(typed.name(), "Completed")
    thread.join()
    assert heard[0].decode().splitlines() == [f"step {number}" for number in range(1, 6)]


@pytest.mark.rule("T81")
def test_a_task_and_a_rank_are_those_of_the_labels_whatever_the_names_look_like(typed: Typed) -> None:
    """The job's own name says `master` and ends with a number, and so does a Task of it."""
    typed.shell.template("gang", TEMPLATE.replace("instance_count: 2", "instance_count: 4"))
    aj_id = typed.run(AJ_NAME="worker-master-run-7")
    name = typed.name()
    assert "master-run-7" in name
    typed.cluster.play(name, "Running")
    rows = typed("k8s", "pods", "--job", aj_id, "--json").json["items"]
    assert [(row["task"], row["index"], row["rank"]) for row in rows] == [
        ("master", 0, 0),
        *(("worker", index, index + 1) for index in range(3)),
    ]
    pods = [typed.cluster.kube.stored("pods", row["name"]) for row in rows]
    for pod in pods:
        about = pod["metadata"]
        for where in ("labels", "annotations"):  # an older release, which says its index in a variable alone
            about[where].pop("volcano.sh/task-index")
    assert [row["rank"] for row in typed("k8s", "pods", "--job", aj_id, "--json").json["items"]] == [0, 1, 2, 3]
    for pod in pods:
        env = pod["spec"]["containers"][0]["env"]
        env[:] = [one for one in env if not one["name"].endswith("_TASK_INDEX")]
    unknown = typed("k8s", "pods", "--job", aj_id, "--json").json["items"]
    assert {(row["index"], row["rank"]) for row in unknown} == {(None, None)}, "a name tells nothing"


@pytest.mark.rule("T82", "V-118")
def test_why_a_job_waits_begins_with_its_age_its_queue_its_quota_and_what_is_missing(typed: Typed) -> None:
    queue = typed.cluster.kube.stored("queues", "default")
    queue["spec"]["capability"] = {"cpu": "1000", "memory": "100Ti", "nvidia.com/gpu": "16"}
    aj_id = typed.run()
    queue["status"] = {"state": "Closed", "allocated": {"nvidia.com/gpu": "8"}, "pending": 3}
    hard, used = {"requests.nvidia.com/gpu": "32", "requests.memory": "1Ti"}, {"requests.nvidia.com/gpu": "8"}
    status = {"hard": hard, "used": {**used, "requests.memory": "512Gi"}}
    typed.cluster.kube.add("resourcequotas", "team", spec={"hard": hard}, status=status)
    typed.cluster.kube.stored("jobs", typed.name())["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    reasons = [row["reason"] for row in typed("job", "why", aj_id, "--output", "json").json["items"]]
    assert reasons[0].startswith("gang: 0 of 2 pods have a node after ") and "d" in reasons[0].split()[9]
    assert reasons[1:] == [
        "queue: default is Closed",
        "queue: nvidia.com/gpu of default: 8 of 16 in use, the job wants 16",
        "quota: requests.memory of team: 512 GiB of 1024 GiB in use, the job wants 1024 GiB",
    ]


@pytest.mark.rule("T84", "V-025", "V-026")
def test_no_name_comes_twice_however_often_a_job_is_sent_and_deleted(typed: Typed) -> None:
    seen: list[str] = []
    for _ in range(3):
        aj_id = typed.run(AJ_NAME="same")
        seen.append(typed.name())
        typed("k8s", "delete", aj_id, "--yes")
    assert len(set(seen)) == 3
    created = [got.json() for got in typed.cluster.requests("POST", "/jobs?") if got.value("dryRun") is None]
    assert all("name" not in body["metadata"] for body in created), "the cluster itself completes a name"
    assert len({body["metadata"]["generateName"] for body in created}) == 3
    helpers = [got.json()["metadata"]["name"] for got in typed.cluster.requests("POST", "/pods?")]
    assert len({name for name in helpers if name.endswith("-upload")}) == 3, "one a job: for its code, and its end"


@pytest.mark.rule("T104", "V-111", "V-118")
def test_jobs_are_filtered_by_state_and_queue_and_the_line_by_hand_stands_beside(typed: Typed) -> None:
    typed.cluster.kube.add("queues", "research", spec={"weight": 1}, status={"state": "Open"})
    first = typed.run()
    name = typed.name()
    typed.cluster.play(name, "Running")
    typed.shell.template("gang", TEMPLATE.replace("service: volcano", "service: volcano, queue: research"))
    second = typed.run()

    def ids(*words: str) -> list[str]:
        return [row["aj_id"] for row in typed("k8s", "jobs", *words, "--json").json["items"]]

    assert (ids("-s", "Running"), ids("-s", "queued"), ids("--queue", "research")) == ([first], [second], [second])
    assert sorted(ids("-s", "running", "-s", "pending")) == sorted([first, second])
    assert ids("-s", "running", "--queue", "research") == []
    line = "kubectl --context lab -n training get jobs.batch.volcano.sh"
    assert f"by hand: `{line}`" in typed("k8s", "jobs").err
    assert typed("k8s", "jobs", first, "--json").json["by_hand"] == f"{line} {name}"
    assert f"by hand: `{line} {name}`" in typed("status", first).err
    place = ("job", "list", "--ws", "volcano://lab/training", "--json")
    assert [row["name"] for row in typed(*place, "-s", "running").json["items"]] == [name]
    assert typed(*place, "--since", "0s").json["items"] == []
    assert len(typed(*place, "-n", "1").json["items"]) == 1


def test_a_context_that_is_not_there_is_told_with_those_that_are(typed: Typed) -> None:
    typed.shell.template("gang", TEMPLATE.replace("service: volcano", "service: volcano, context: prod"))
    ran = typed("run", "-t", "gang", "train.py", code=2)
    assert f"no context called prod in {typed.cluster.config} (has: lab)" in ran.err
