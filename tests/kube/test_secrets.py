"""Secrets: made, given to a job, renewed under a guard; what they hold is masked from the first moment on."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base import redact
from aj.base.errors import NotFound, OutcomeUnknown, Refused
from aj.kube import secrets
from aj.kube.client import Cluster
from aj.model.json import Json
from aj.net.document import Document
from tests.kube.test_exec import reach
from tests.servers import kube
from tests.servers.kube import NAMESPACE, Cut

pytestmark = pytest.mark.usefixtures("loopback", "programs", "real_clock")
NAME = "aj-0a1b2c3d"
LABELS: dict[str, Json] = {"aj-id": "0a1b2c3d", "app.kubernetes.io/managed-by": "aj"}
PATH = f"/api/v1/namespaces/{NAMESPACE}/secrets"
TASK = {"name": "master", "replicas": 1, "template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}}


def body(**values: str) -> dict[str, Json]:
    data: dict[str, Json] = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    about: dict[str, Json] = {"name": NAME, "namespace": NAMESPACE, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "data": data}


def a_job(server: kube.Cluster) -> Document:
    """A job that a Secret may belong to."""
    spec = {"minAvailable": 1, "queue": "default", "tasks": [TASK]}
    made: dict[str, Json] = server.kube.add("jobs", "train-x", spec=spec)
    return Document(made, "a job")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[kube.Cluster]:
    with kube.running(tmp_path, tls=False) as cluster:
        yield cluster


@pytest.fixture
def ours(server: kube.Cluster, tmp_path: Path) -> Cluster:
    return reach(server, tmp_path)


@pytest.mark.rule("V-085", "V-072")
def test_a_secret_is_made_given_to_its_job_and_removed(server: kube.Cluster, ours: Cluster) -> None:
    made = secrets.create(ours, body(code="https://x/y?sig=planted-one-1"), NAMESPACE)
    assert (made.data, made.is_owned) == ({"code": "https://x/y?sig=planted-one-1"}, False)
    job = a_job(server)
    secrets.own(ours, NAME, NAMESPACE, job)
    (owner,) = server.kube.stored("secrets", NAME)["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train-x",
        "uid": job.need_text("metadata", "uid"),
        "controller": False,
        "blockOwnerDeletion": False,
    }
    there = secrets.find(ours, NAME, NAMESPACE)
    assert there is not None and there.is_owned and there.data == made.data
    assert secrets.remove(ours, NAME, NAMESPACE)
    assert not secrets.remove(ours, NAME, NAMESPACE)
    assert not server.requests("PATCH"), "a right to patch secrets is not among those that a job needs"
    assert not [got for got in server.requests("GET", PATH) if got.path == PATH], "secrets are never listed"


@pytest.mark.rule("V-084")
def test_a_renewal_changes_only_keys_that_are_there(server: kube.Cluster, ours: Cluster) -> None:
    secrets.create(ours, body(one="old-value-1", two="old-value-2"), NAMESPACE)
    secrets.own(ours, NAME, NAMESPACE, a_job(server))
    renewed = secrets.renew(ours, NAME, NAMESPACE, {"one": "new-value-1", "other": "no-place-for-it"})
    assert renewed.data == {"one": "new-value-1", "two": "old-value-2"}
    assert renewed.is_owned
    with pytest.raises(NotFound, match="secret none is not in namespace training"):
        secrets.renew(ours, "none", NAMESPACE, {})


@pytest.mark.rule("V-084")
def test_somebody_elses_change_is_not_undone(server: kube.Cluster, ours: Cluster) -> None:
    secrets.create(ours, body(one="old-value-1", two="old-value-2"), NAMESPACE)
    conflict = kube.status(409, "the object has been modified; please apply your changes to the latest version")
    server.server.on(f"PUT {PATH}", conflict)
    assert secrets.renew(ours, NAME, NAMESPACE, {"one": "new-value-1"}).data["one"] == "new-value-1"
    assert all(b'"resourceVersion"' in got.body for got in server.requests("PUT", PATH))
    server.server.on(f"PUT {PATH}", *[conflict] * secrets.TRIES)
    with pytest.raises(Refused, match="changed by others all the time"):
        secrets.renew(ours, NAME, NAMESPACE, {"one": "newer"})


def test_the_same_again_gives_the_same_secret(server: kube.Cluster, ours: Cluster) -> None:
    first = secrets.create(ours, body(one="value-number-1"), NAMESPACE)
    again = secrets.create(ours, body(one="value-number-2"), NAMESPACE)
    assert (again.uid, again.data) == (first.uid, {"one": "value-number-2"})
    secrets.remove(ours, NAME, NAMESPACE)
    server.server.on(f"POST {PATH}", Cut.AFTER_BODY)
    assert secrets.create(ours, body(one="value-number-3"), NAMESPACE).data == {"one": "value-number-3"}
    secrets.remove(ours, NAME, NAMESPACE)
    server.server.on(f"POST {PATH}", kube.Undone())
    with pytest.raises(OutcomeUnknown):
        secrets.create(ours, body(one="value-number-4"), NAMESPACE)


def test_a_secret_of_somebody_else_is_left_alone(server: kube.Cluster, ours: Cluster) -> None:
    server.kube.add("secrets", NAME, data={"theirs": "eA=="}, type="Opaque")
    with pytest.raises(Refused) as caught:
        secrets.create(ours, body(one="value"), NAMESPACE)
    assert caught.value.code == "other-secret"
    assert server.kube.stored("secrets", NAME)["data"] == {"theirs": "eA=="}


def test_a_removal_is_tried_again_while_its_answer_is_lost(server: kube.Cluster, ours: Cluster) -> None:
    secrets.create(ours, body(one="value"), NAMESPACE)
    server.server.on(f"DELETE {PATH}", Cut.AFTER_BODY)
    assert secrets.remove(ours, NAME, NAMESPACE) is False, "the first try did it, as the second one saw"


@pytest.mark.rule("A-011")
def test_what_a_secret_holds_is_masked_everywhere(server: kube.Cluster, ours: Cluster) -> None:
    planted = "sv=1&sr=c&planted-storage-signature"
    server.kube.denials.append(("secrets", kube.Denied(f"nobody may write {planted}")))
    with pytest.raises(Refused) as caught:
        secrets.create(ours, body(one=planted), NAMESPACE)
    assert planted not in str(caught.value)
    assert planted not in redact.text(f"x {planted} y")
    assert base64.b64encode(planted.encode()).decode() not in redact.text(repr(body(one=planted)))
    server.kube.denials.clear()
    assert planted not in repr(secrets.create(ours, body(one=planted), NAMESPACE))
