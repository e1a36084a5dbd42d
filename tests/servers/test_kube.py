"""The server that stands for a cluster refuses what a real one refuses, and runs what it is told to run."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3

from tests.servers import kube
from tests.servers.kube import NAMESPACE, Cluster, Cut

HERE = f"/namespaces/{NAMESPACE}"
PODS, SECRETS, JOBS = f"/api/v1{HERE}/pods", f"/api/v1{HERE}/secrets", f"/apis/batch.volcano.sh/v1alpha1{HERE}/jobs"


@dataclass
class Caller:
    """Speaks to the server without any client's help."""

    pool: urllib3.PoolManager
    url: str
    token: str = kube.TOKEN

    def __call__(self, method: str, path: str, body: object = None, **more: str) -> tuple[int, dict]:
        kind = more.pop("kind", "application/json")
        query = "&".join(f"{name}={value}" for name, value in more.items())
        data = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Content-Type": kind} if data else {})
        answer = self.pool.request(method, f"{self.url}{path}?{query}", body=data, headers=headers, retries=False)
        return answer.status, json.loads(answer.data)


@pytest.fixture
def cluster(tmp_path: Path, loopback: None, programs: None, real_clock: None) -> Iterator[Cluster]:
    with kube.running(tmp_path) as cluster:
        yield cluster


@pytest.fixture
def call(cluster: Cluster) -> Iterator[Caller]:
    context = ssl.create_default_context(cadata=cluster.authority.decode())
    pool = urllib3.PoolManager(ssl_context=context, timeout=30)
    yield Caller(pool, cluster.server.url)
    pool.clear()


def a_pod(name: str = "one", **container: object) -> dict:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": kube.CLAIM}}]
    main = {"name": "main", "image": "x:1", "volumeMounts": [{"name": "data", "mountPath": "/mnt/shared"}], **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [main], "volumes": volumes},
    }


def a_job(**spec: object) -> dict:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x:1"}]}}
    task = {"name": "master", "replicas": 1, "minAvailable": 1, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"generateName": "train-0a1b2c3d-", "labels": {"aj-id": "0a1b2c3d"}},
        "spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [task], **spec},
    }


def test_a_job_is_made_once_named_and_shaped(cluster: Cluster, call: Caller) -> None:
    code, dry = call("POST", JOBS, a_job(), dryRun="All", fieldValidation="Strict")
    assert (code, cluster.kube.names("jobs")) == (201, [])
    assert dry["spec"]["maxRetry"] == 3  # as the definition says
    code, made = call("POST", JOBS, a_job(), fieldValidation="Strict")
    name = made["metadata"]["name"]
    assert (code, cluster.kube.names("jobs")) == (201, [name])
    assert name.startswith("train-0a1b2c3d-") and len(name) == len("train-0a1b2c3d-") + 5
    assert call("GET", f"{JOBS}/{name}") == (200, made)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"colour": "red"}, 400, 'strict decoding error: unknown field "spec.colour"'),
        ({"minAvailable": "1"}, 422, 'spec.minAvailable in body must be of type integer: "string"'),
        ({"queue": "No_Name"}, 422, "spec.queue in body should match"),
        ({"minAvailable": 7}, 400, "job 'minAvailable' should not be greater than total replicas in tasks"),
        ({"queue": "closed"}, 400, "queue `closed` status is `Closed`"),
        ({"queue": "nobody"}, 400, 'queues.scheduling.volcano.sh "nobody" not found'),
        ({"policies": [{"event": "PodFails", "action": "TerminateJob"}]}, 422, 'Unsupported value: "PodFails"'),
    ],
)
def test_a_job_that_is_not_legal_is_refused(
    cluster: Cluster, call: Caller, change: dict, code: int, words: str
) -> None:
    found, said = call("POST", JOBS, a_job(**change), fieldValidation="Strict")
    assert (found, said["kind"]) == (code, "Status")
    assert words in said["message"]
    assert cluster.kube.names("jobs") == []


def test_lost_answers_leave_what_was_done(cluster: Cluster, call: Caller) -> None:
    cluster.server.on("POST /apis/batch.volcano.sh", Cut.AFTER_HEADERS, kube.Undone(), Cut.AFTER_BODY)
    for due in (0, 0, 1):
        with pytest.raises(urllib3.exceptions.HTTPError):
            call("POST", JOBS, a_job())
        assert len(cluster.kube.names("jobs")) == due
