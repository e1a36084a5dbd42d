"""aj k8s: clusters looked at by hand, through a real daemon, before a server that checks what it is sent."""

from __future__ import annotations

import threading

import pytest

from aj.base.clock import SYSTEM
from tests.cli.test_volcano import Typed
from tests.servers import kube


@pytest.mark.rule("V-110", "V-002")
def test_where_one_is_and_what_one_may_do(typed: Typed) -> None:
    plain = typed("k8s", "status", "--json").json["item"]
    assert (plain["context"], plain["namespace"], plain["version"]) == ("lab", "training", None)
    asked = len(typed.cluster.requests())
    typed("k", "status", "-n", "other")
    assert len(typed.cluster.requests()) == asked, "nobody was asked"
    checked = typed("k8s", "status", "--check-cluster", "--json").json["item"]
    assert checked["version"].startswith("v") and checked["has_volcano"] is True
    assert {"verb": "create", "resource": "jobs.batch.volcano.sh", "allowed": True} in checked["rights"]
    typed.cluster.server.hangs_up = True
    typed("daemon", "restart")
    ran = typed("k8s", "status", "--check-cluster", code=1)
    assert "lab" in ran.out and ran.err


@pytest.mark.rule("V-111", "V-113", "C-040")
def test_jobs_and_pods_with_their_reasons(typed: Typed) -> None:
    assert "no jobs in training\n" in typed("k8s", "jobs").err
    aj_id = typed.run()
    name = typed.name()
    typed.cluster.play(name, "Running")
    row = typed("k8s", "jobs", "--json").json["items"][0]
    assert (row["name"], row["aj_id"], row["phase"], row["min_available"], row["running"]) == (
        *(name, aj_id, "Running", 2, 2),
    )
    typed.cluster.nodes.become(typed.cluster.kube.stored("pods", f"{name}-worker-0"), kube.ended(137, "OOMKilled"))
    typed.cluster.play(name, "Failed")
    for word in (name, aj_id):
        (row,) = typed("k8s", "jobs", word, "--json").json["items"]
        assert row["reason"].startswith("worker-0 failed on node node-1: exit 137 (OOMKilled)")
    pods = typed("k8s", "pods", "--job", aj_id, "--json").json["items"]
    assert [(pod["task"], pod["index"], pod["rank"]) for pod in pods] == [("master", 0, 0), ("worker", 0, 1)]
    assert pods[1]["reason"] == "exit 137 (OOMKilled)"
    assert typed("k8s", "pods", "-o", "name").out.split() == [f"{name}-master-0", f"{name}-worker-0"]
    assert "no job and no pod nothing in namespace training of lab" in typed("k8s", "jobs", "nothing", code=3).err


@pytest.mark.rule("V-112")
def test_queues_with_what_they_hold(typed: Typed) -> None:
    queue = typed.cluster.kube.stored("queues", "default")
    queue["spec"]["capability"] = {"nvidia.com/gpu": "64", "memory": "128Gi"}
    queue["status"] = {"state": "Open", "allocated": {"nvidia.com/gpu": "60"}, "running": 3}
    rows = {row[0]: row for row in typed("k8s", "queues").rows}
    assert rows["default"][1:] == ["Open", *rows["default"][2:4], "3", "memory 0 B/128.0 GiB, nvidia.com/gpu 60/64"]
    (item,) = [one for one in typed("k8s", "queues", "--json").json["items"] if one["name"] == "default"]
    assert item["capability"] == {"memory": str(128 * 1024**3), "nvidia.com/gpu": "64"}


@pytest.mark.rule("V-114")
def test_logs_of_a_rank_of_a_pod_of_before_and_as_they_come(typed: Typed) -> None:
    aj_id = typed.run()
    name = typed.name()
    assert "has no pod of rank 3" in typed("k8s", "logs", aj_id, "--rank", "3", code=3).err
    typed.cluster.play(name, "Running")
    typed.log("master-0", *((f"2026-01-01T00:00:0{second}Z", f"step {second}") for second in range(1, 5)))
    typed.log("worker-0", ("2026-01-01T00:00:02Z", "Authorization: Bearer abcdefghijklmnop"))
    assert typed("k8s", "logs", aj_id, "--tail", "2").out == "step 3\nstep 4\n"
    assert "abcdefghijklmnop" not in typed("k8s", "logs", f"{name}-worker-0").out
    assert "abcdefghijklmnop" in typed("k8s", "logs", aj_id, "--rank", "1", "--raw").out
    items = typed("k8s", "logs", name, "--json").json
    assert items["pod"] == f"{name}-master-0" and items["items"][0]["text"] == "step 1"
    previous = typed.cluster.nodes.log(kube.NAMESPACE, f"{name}-master-0", "main", previous=True)
    previous.say("before the restart")
    assert "before the restart" in typed("k8s", "logs", name, "--previous").out
    typed("k8s", "logs", name, "-f", "--previous", code=2)
    for tail in ("0", "5001"):
        typed("k8s", "logs", name, "--tail", tail, code=2)
    heard: list = []
    thread = threading.Thread(target=lambda: heard.append(typed.shell("k8s", "logs", name, "-f", "--tail", "1")))
    thread.start()
    seen = len(typed.cluster.requests("GET", "/log"))
    end = SYSTEM.monotonic() + 60
    while len(typed.cluster.requests("GET", "/log")) <= seen:
        assert SYSTEM.monotonic() < end
        SYSTEM.sleep(0.05)
    typed.log("master-0", ("2026-01-01T00:00:09Z", "step 9"))
    typed.cluster.nodes.become(typed.cluster.kube.stored("pods", f"{name}-master-0"), kube.ended(0, "Completed"))
    thread.join()
    assert heard[0].out.splitlines() == ["step 4", "step 9"]


@pytest.mark.rule("V-115")
def test_events_are_merged_and_the_oldest_comes_first(typed: Typed) -> None:
    aj_id = typed.run()
    name = typed.name()
    typed.cluster.play(name, "Running")
    pod = typed.cluster.kube.stored("pods", f"{name}-master-0")
    for count in (2, 3):
        typed.cluster.nodes.event(pod, "Warning", "BackOff", "Back-off pulling image", count=count)
    for word in (aj_id, f"{name}-master-0"):
        rows = typed("k8s", "events", word, "--json").json["items"]
        (backoff,) = [row for row in rows if row["reason"] == "BackOff"]
        assert (backoff["count"], backoff["object"], backoff["type"]) == (5, f"pod/{name}-master-0", "Warning")
        assert [row["last_at"] for row in rows] == sorted(row["last_at"] for row in rows)
    typed("k8s", "events", "nothing", code=3)


@pytest.mark.rule("V-116", "V-069", "C-040")
def test_delete_asks_and_takes_the_very_job_its_secret_and_its_code(typed: Typed) -> None:
    aj_id = typed.run()
    name = typed.name()
    uid = typed.cluster.kube.stored("jobs", name)["metadata"]["uid"]
    folder = typed.cluster.nodes.claim(kube.NAMESPACE, "team-data") / "aj_code" / aj_id
    assert folder.is_dir()
    marks = {"labels": {"aj-id": aj_id, "app.kubernetes.io/managed-by": "aj"}}
    typed.cluster.kube.add("secrets", f"aj-{aj_id}", metadata=marks, data={})
    assert "not without a yes" in typed("k8s", "delete", aj_id, code=5).err
    assert typed("k8s", "delete", aj_id, "-d").rows[0][0] == name
    assert typed.cluster.kube.names("jobs") == [name]
    ran = typed("k8s", "delete", aj_id, "--yes")
    assert ran.out == f"deleted {name} and Secret aj-{aj_id}\n"
    assert (typed.cluster.kube.names("jobs"), typed.cluster.kube.names("secrets")) == ([], [])
    (sent,) = typed.cluster.requests("DELETE", "/jobs/")
    assert uid.encode() in sent.body and b"Background" in sent.body
    assert not folder.exists()
    assert typed.cluster.kube.names("pods") == []
    typed("k8s", "delete", aj_id, "--yes", code=3)


@pytest.mark.rule("V-116")
def test_a_secret_that_only_has_the_name_stays_when_a_job_is_deleted(typed: Typed) -> None:
    aj_id = typed.run()
    typed.cluster.kube.add("secrets", f"aj-{aj_id}", data={})
    ran = typed("k8s", "delete", aj_id, "--yes")
    assert typed.cluster.kube.names("secrets") == [f"aj-{aj_id}"]
    assert "Secret" not in ran.out and f"Secret aj-{aj_id} stays: it is not ours" in ran.err


@pytest.mark.rule("C-040")
@pytest.mark.parametrize("word", ["-x", "a/b", "A", "a,b=c", "a=b", ".", ""])
def test_a_word_that_is_no_name_reaches_no_server(typed: Typed, word: str) -> None:
    typed("k8s", "status")
    before = len(typed.cluster.requests())
    for command in ("jobs", "events", "logs"):
        typed("k8s", command, "--", word, code=2)
    assert len(typed.cluster.requests()) == before


@pytest.mark.rule("V-001")
def test_another_kubeconfig_counts_when_it_is_named(typed: Typed) -> None:
    other = typed.cluster.write(typed.shell.directory / "other.yaml", context="other")
    shown = typed("k8s", "status", "--kubeconfig", other.name, "--json").json["item"]
    assert shown["context"] == "other"
    assert "is not there" in typed("k8s", "status", "--kubeconfig", "nowhere", code=2).err
