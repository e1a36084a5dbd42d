"""The stories with a cluster that are on tape: what is sent is the same each time, and what is answered is real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from unittest import mock

import pytest

from aj.base.errors import NotFound, Refused
from aj.kube import client, jobs, queues, secrets
from aj.kube.client import Cluster
from aj.kube.resources import JOBS, SECRETS
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.state import JobState
from tests.cassettes.kube_tape import CLAIM, CLOSED, Ground, Story
from tests.template.kit import ID, Request, built, project

AT = "2026-01-31T12:00:00.000000+00:00"
TEMPLATE = """base:
config:
  target: {service: volcano, queue: default, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi, rdma: true}
  environment: {image: "registry.example/train:1"}
  storage: {data: {storage_account_name: stuff, container_name: ccc, mount_dir: /mnt/d}}
  jobs:
  - sku: "{nodes}xG{processes}"
    instance_count: 2
    submit_args:
      env: {AMLT_PERSISTENT_VOLUME_NAME: team-data, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/shared}
"""
assert CLAIM in TEMPLATE


def spec(ground: Ground, template: str = TEMPLATE, aj_id: str = ID) -> JobSpec:
    """The job of a template."""
    root = ground.folder / "project"
    asked = Request(aj_id, root, ("python", "train.py"), project(root, {"t": template}), name="train")
    return built(root, template, request=asked).spec


def _send(ground: Ground, one: JobSpec) -> Handle:
    service = ground.service()
    planned = service.plan(one, None, accepted_at=AT)
    service.prepare(planned)
    return service.submit(planned)


def submit(ground: Ground) -> None:
    """A dry run, the Secret, the job once, its ownership of the Secret; found again; ended by its uid."""
    one = spec(ground)
    handle = _send(ground, one)
    assert handle.place == f"lab/{ground.namespace}"
    assert handle.name.startswith(f"train-{ID}-") and len(handle.name) == len(f"train-{ID}-") + 5
    job = jobs.get(ground.cluster, handle.name)
    kept = ground.cluster.get(SECRETS, f"aj-{ID}")
    (owner,) = kept.each("metadata", "ownerReferences")
    assert (owner.text("uid"), owner.text("name"), owner.text("kind")) == (job.uid, job.name, "Job")
    assert owner.flag("controller") is False
    assert ground.service().find(one) == handle
    assert _send(ground, one) == handle  # nothing is created a second time
    assert len(jobs.by_id(ground.cluster, ID)) == 1
    status = ground.service().status(handle)
    assert status is None or status.state in (None, JobState.QUEUED)  # nobody schedules it
    ground.service().cancel(handle)
    assert jobs.find(ground.cluster, handle.name) is None
    assert ground.service().find(one) is None


def conflict(ground: Ground) -> None:
    """Somebody else was faster: a name that is taken, a version that is old."""
    body = _secret("aj-taken")
    first = ground.cluster.create(SECRETS, body)
    with pytest.raises(Refused) as caught:
        ground.cluster.create(SECRETS, body)
    assert caught.value.code == "exists"
    old: Mapping[str, Json] = {**body, "metadata": {"name": "aj-taken", "resourceVersion": "1"}}
    with pytest.raises(Refused) as caught:
        ground.cluster.replace(SECRETS, "aj-taken", old)
    assert caught.value.code == "conflict"
    assert ground.cluster.delete(SECRETS, "aj-taken", uid=first.text("metadata", "uid"))


def forbidden(ground: Ground) -> None:
    """Who has no right is told which one is missing, and where."""
    with pytest.raises(Refused) as caught:
        ground.powerless.create(JOBS, _job("nothing"))
    who = f"system:serviceaccount:{ground.namespace}:aj-nobody"
    words = f"no right to create jobs.batch.volcano.sh in namespace {ground.namespace} as user {who}"
    assert caught.value.message == words
    with pytest.raises(Refused, match=r"no right to list jobs\.batch\.volcano\.sh"):
        jobs.by_id(ground.powerless, ID)
    assert ground.powerless.may("create", JOBS.resource) is False
    assert ground.cluster.may("create", JOBS.resource) is True
    assert ground.cluster.may("create", "pods/exec") is True
    warning = queues.check(ground.powerless, "default")
    assert warning is not None and "no right to get queues.scheduling.volcano.sh" in warning


def strict(ground: Ground) -> None:
    """A field that nobody knows, a wrong type and a wrong word are refused, and nothing is made."""
    for changes, words in (
        ({"colour": "red"}, 'unknown field "spec.colour"'),
        ({"minAvailable": "2"}, "spec.minAvailable"),
        ({"policies": [{"event": "PodFails", "action": "TerminateJob"}]}, "spec.policies"),
        ({"queue": "No_Queue"}, "spec.queue"),
    ):
        wrong = _job("wrong", **changes)
        for attempt in (ground.cluster.dry_run, ground.cluster.create):
            with pytest.raises(Refused) as caught:
                attempt(JOBS, wrong)
            assert words in caught.value.message
    assert jobs.every(ground.cluster) == ()


def reconcile(ground: Ground) -> None:
    """A submission is found by its label; of two that bear it, both are named."""
    one = spec(ground, TEMPLATE.replace("  storage:", "  # storage:"))
    service = ground.service()
    planned = service.plan(one, None, accepted_at=AT)
    service.prepare(planned)
    assert ground.service().find(one) is None
    handle = service.submit(planned)
    assert ground.service().find(one) == handle
    made = ground.cluster.get(JOBS, handle.name)
    twin: Mapping[str, Json] = {
        "apiVersion": JOBS.api_version,
        "kind": "Job",
        "metadata": {"name": "twin", "labels": {"aj-id": ID}},
        "spec": made.values["spec"],
    }
    ground.cluster.create(JOBS, twin)
    with pytest.raises(Refused) as caught:
        ground.service().find(one)
    assert caught.value.message == f"2 jobs bear the id {ID}: {handle.name}, twin"
    assert len(jobs.every(ground.cluster)) == 2


def queue(ground: Ground) -> None:
    """A queue that is closed, or is not there, takes nothing; an open one says so."""
    assert queues.check(ground.cluster, "default") is None
    for name, words in ((CLOSED, f"queue {CLOSED} is Closed"), ("aj-test-none", "there is no queue aj-test-none")):
        with pytest.raises((Refused, NotFound), match=words):
            ground.service().plan(
                spec(ground, TEMPLATE.replace("queue: default", f"queue: {name}")), None, accepted_at=AT
            )
    assert jobs.every(ground.cluster) == ()


def paging(ground: Ground) -> None:
    """A list is read to its last page."""
    for number in range(5):
        ground.cluster.create(JOBS, _job(f"many-{number}"))
    with mock.patch.object(client, "PAGE", 2):
        found = ground.cluster.list(JOBS)
        chosen = ground.cluster.list(JOBS, labels={"aj-test": "many-3"})
    assert [one.text("metadata", "name") for one in found] == [f"many-{number}" for number in range(5)]
    assert [one.text("metadata", "name") for one in chosen] == ["many-3"]


def delete(ground: Ground) -> None:
    """Only the very object is deleted, not one that took its name."""
    first = ground.cluster.create(JOBS, _job("phoenix"))
    uid = first.text("metadata", "uid")
    with pytest.raises(Refused) as caught:
        ground.cluster.delete(JOBS, "phoenix", uid="dddddddd-0000-0000-0000-000000000001")
    assert caught.value.code == "conflict"
    assert ground.cluster.find(JOBS, "phoenix") is not None
    assert ground.cluster.delete(JOBS, "phoenix", uid=uid)
    assert not ground.cluster.delete(JOBS, "phoenix", uid=uid)
    again = jobs.of(ground.cluster.create(JOBS, _job("phoenix")))
    assert not _deleted(ground.cluster, replace(again, uid=uid or ""))
    assert ground.cluster.find(JOBS, "phoenix") is not None
    assert jobs.delete(ground.cluster, again)


def _deleted(cluster: Cluster, job: jobs.Job) -> bool:
    try:
        return jobs.delete(cluster, job)
    except Refused as error:
        assert error.code == "conflict"
        return False


def kept(ground: Ground) -> None:
    """A Secret is made, renewed where it has the key, owned by a job, and removed."""
    body = _secret("aj-0a1b2c3d", labels={"aj-id": ID})
    made = secrets.create(ground.cluster, body, ground.namespace)
    renewed = secrets.renew(ground.cluster, "aj-0a1b2c3d", ground.namespace, {"code.url": "redacted", "more": "no"})
    assert set(renewed.data) == set(made.data) == {"code.url"}
    job = ground.cluster.create(JOBS, _job("owner"))
    secrets.own(ground.cluster, "aj-0a1b2c3d", ground.namespace, job)
    (owner,) = ground.cluster.get(SECRETS, "aj-0a1b2c3d").each("metadata", "ownerReferences")
    assert owner.text("uid") == job.text("metadata", "uid")
    assert secrets.remove(ground.cluster, "aj-0a1b2c3d", ground.namespace)
    assert secrets.find(ground.cluster, "aj-0a1b2c3d", ground.namespace) is None
    assert not secrets.remove(ground.cluster, "aj-0a1b2c3d", ground.namespace)


def _secret(name: str, **metadata: Json) -> Mapping[str, Json]:
    about: dict[str, Json] = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": {"code.url": "cmVkYWN0ZWQ="}}


def _job(name: str, **spec: Json) -> Mapping[str, Json]:
    template: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x:1"}]}}
    task: Json = {"name": "master", "replicas": 1, "minAvailable": 1, "template": template}
    about: Json = {"name": name, "labels": {"aj-test": name}}
    every: dict[str, Json] = {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [task]}
    return {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": about, "spec": {**every, **spec}}


STORIES: Mapping[str, Story] = {
    "submit": submit,
    "conflict": conflict,
    "forbidden": forbidden,
    "strict": strict,
    "reconcile": reconcile,
    "queue": queue,
    "paging": paging,
    "delete": delete,
    "secrets": kept,
}
