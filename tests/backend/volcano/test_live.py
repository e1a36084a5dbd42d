"""What the user's own examples send is accepted by an API server, unknown fields refused, as one rehearses it.

The suite asks the tests' own server; `pytest --cluster` asks the one that `AJ_TEST_KUBECONFIG` names, too. A Job is
accepted by the definition of Volcano alone, so each of its pods is shown to the server as a pod as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from aj.backend.volcano import payload, porter
from aj.backend.volcano.payload import Objects
from aj.base.errors import Refused
from aj.base.settings import Settings
from aj.kube import config
from aj.kube.client import Cluster
from aj.kube.resources import JOBS, PODS, SECRETS
from aj.model.job import JobSpec
from tests.backend.volcano import kit
from tests.backend.volcano.kit import Plain
from tests.conftest import MovedClock
from tests.servers import kube
from tests.template.kit import EXAMPLES, built

PLACEHOLDERS = {
    "<KUBECTL_CONTEXT>": "lab",
    "<CONTAINER_IMAGE>": "registry.example/train:1",
    "<PVC_NAME>": "team-data",
    "<ACCOUNT>": "account1",
    "<CONTAINER>": "code",
}
KINDS: Mapping[str, tuple[str, ...]] = {
    "plain": ("volcano",),
    "blob": ("volcano", "blob"),
    "nested": ("volcano", "nested"),
    "storage": ("volcano", "storage"),
    "heterogeneous": ("heterogeneous",),
}


@dataclass(frozen=True)
class Sent:
    """All that one example sends."""

    spec: JobSpec
    objects: Objects
    namespace: str

    @property
    def pods(self) -> Iterator[Plain]:
        """The pods of each Task, as Volcano makes them."""
        for name, task in kit.tasks(self.objects).items():
            template = cast(Plain, task["template"])
            metadata = {**cast(Plain, template["metadata"]), "name": f"aj-test-{name}-0", "namespace": self.namespace}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

    @property
    def helper(self) -> porter.Helper:
        chosen = payload.options(self.spec)
        facts = kit.facts(namespace=self.namespace)
        return porter.of_job(self.spec, chosen, facts, image="registry.example/helper:1", owner="me")


@pytest.fixture(params=["ours", "cluster"])
def cluster(request: pytest.FixtureRequest, clock: MovedClock, tmp_path: Path) -> Iterator[Cluster]:
    """A server that is asked: our own, or a real one, on which nothing is ever made."""
    if request.param == "cluster":
        yield from _opened(request.getfixturevalue("real_cluster"), "default", clock, tmp_path)
        return
    request.getfixturevalue("loopback")
    with kube.running(tmp_path / "server") as server:
        yield from _opened(server.config, kube.NAMESPACE, clock, tmp_path)


def _opened(kubeconfig: Path, namespace: str, clock: MovedClock, folder: Path) -> Iterator[Cluster]:
    settings = Settings({"KUBECONFIG": str(kubeconfig)})
    cluster = Cluster(config.read(settings).access(None, namespace), settings, clock, folder / "kube")
    yield cluster
    cluster.close()


def sent(kind: str, root: Path, namespace: str) -> Sent:
    """Build what one of the user's examples sends."""
    texts = {name: (EXAMPLES / f"{name}.yaml").read_text() for name in KINDS[kind]}
    for placeholder, value in PLACEHOLDERS.items():
        texts = {name: text.replace(placeholder, value) for name, text in texts.items()}
    if kind == "storage":  # both examples mount something there; together one of them has to go elsewhere
        texts["storage"] = texts["storage"].replace("/mnt/shared", "/mnt/stuff")
    others = {f"part/{name}": text for name, text in texts.items()}
    bases = ", ".join(f"part.{name}" for name in texts)
    folder = root / "train"
    folder.mkdir()
    spec = built(folder, f"base: [{bases}]\nconfig: {{}}\n", "python", "train.py", **others).spec
    facts = kit.facts(namespace=namespace)
    chosen = payload.options(spec)
    if not payload.moves_code(chosen):
        facts = kit.facts(namespace=namespace, digest=None, archive_sha256=None)
    return Sent(spec, payload.build(spec, chosen, facts), namespace)


@pytest.mark.rule("V-030", "V-031", "V-033", "V-039", "V-063", "V-072", "V-130")
@pytest.mark.parametrize("kind", KINDS)
def test_the_users_examples_are_accepted(kind: str, cluster: Cluster, tmp_path: Path) -> None:
    one = sent(kind, tmp_path, cluster.namespace)
    answered = cluster.dry_run(JOBS, one.objects.job)
    assert answered.need_text("metadata", "name").startswith(f"train-{one.spec.id}-")
    pods = [cluster.dry_run(PODS, pod) for pod in one.pods]
    assert len(pods) == len(kit.tasks(one.objects))
    if one.objects.secret_keys:
        values = dict.fromkeys(one.objects.secret_keys, "none")
        cluster.dry_run(SECRETS, payload.secret(one.spec, kit.facts(namespace=one.namespace), values))
    if payload.options(one.spec).volume is not None:
        cluster.dry_run(PODS, one.helper.body)


@pytest.mark.rule("V-039")
def test_a_field_that_nobody_knows_is_refused_wherever_it_stands(cluster: Cluster, tmp_path: Path) -> None:
    one = sent("plain", tmp_path, cluster.namespace)
    spec = {**cast(Plain, one.objects.job["spec"]), "colour": "red"}
    with pytest.raises(Refused, match=r'unknown field "spec\.colour"'):
        cluster.dry_run(JOBS, {**one.objects.job, "spec": spec})
    pod = next(one.pods)
    with pytest.raises(Refused, match=r'unknown field "spec\.colour"'):
        cluster.dry_run(PODS, {**pod, "spec": {**cast(Plain, pod["spec"]), "colour": "red"}})
