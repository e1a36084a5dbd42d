"""How conversations with a real API server of Kubernetes are taped: whom a story speaks to, and what is never written.

A tape is made, and a story is lived, in a namespace of the story's own that is deleted afterwards. On a tape the
namespace, the server and every uid have names of ours, and pod templates are left out: what stands in them is proven
elsewhere, and a tape of it could not be made anew without a cluster.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
import yaml

from aj.azure.memory import Memory
from aj.backend.volcano import backend as room
from aj.backend.volcano.backend import Means, VolcanoBackend
from aj.backend.volcano.options import Options
from aj.backend.volcano.variables import Facts
from aj.base.settings import Settings
from aj.kube import config
from aj.kube.client import Cluster
from aj.model.job import JobSpec
from aj.model.step import Step
from tests.cassettes.tape import LEFT_OUT, Tape
from tests.conftest import MovedClock

SERVER = "127.0.0.1:4"
NAMESPACE = "training"
CLOSED = "aj-test-closed"
CLAIM = "team-data"
NOBODY = "aj-nobody"  # an account without rights
BEARER = "redacted"
SECRET_VALUE = base64.b64encode(b"redacted").decode()
ADMIN, POWERLESS = "lab", "nobody"  # contexts
_UID = re.compile(rb"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_OURS = re.compile(rb"([0-9a-f])\1{7}-0000-0000-0000-0{11}[0-9a-f]\Z")
_OWN_HEADERS = ("audit-id", "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid", "accept-encoding")


@dataclass
class KubeTape(Tape):
    """Rewrites requests and answers of one story."""

    uids: dict[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def replayed(cls) -> KubeTape:
        return cls({SERVER: SERVER})

    @property
    def config(self) -> dict[str, Any]:
        return {**super().config, "filter_headers": [*LEFT_OUT, *_OWN_HEADERS]}

    def request(self, request: Any) -> Any:
        found = super().request(request)
        if found is not None:
            found.body = self._hidden(found.body)
        return found

    def response(self, response: dict[str, Any]) -> dict[str, Any]:
        found = super().response(response)
        headers = {name: value for name, value in found["headers"].items() if name.lower() not in _OWN_HEADERS}
        body = self._hidden(found["body"]["string"])
        headers = {name: [str(len(body))] if name.lower() == "content-length" else v for name, v in headers.items()}
        return {**found, "headers": headers, "body": {"string": body}}

    def _hidden(self, body: bytes) -> bytes:
        """Values of Secrets and uids as nobody's, pods as empty."""
        with contextlib.suppress(ValueError):
            body = json.dumps(_emptied(json.loads(body)), separators=(",", ":")).encode()
        return _UID.sub(lambda found: self._uid(found[0]), body)

    def _uid(self, real: bytes) -> bytes:
        if _OURS.match(real):
            return real
        number = len(self.uids)
        letter, digit = "abcdef0123456789"[number // 15], "123456789abcdef"[number % 15]
        return self.uids.setdefault(real, f"{letter * 8}-0000-0000-0000-{digit:0>12}".encode())


def _emptied(value: object) -> object:
    if isinstance(value, list):
        return [_emptied(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: _emptied(item) for name, item in value.items() if name != "managedFields"}
    if "template" in found:
        found["template"] = {"spec": {"containers": []}}
    if isinstance(value.get("data"), dict):
        found["data"] = dict.fromkeys(value["data"], SECRET_VALUE)
    return found


class Courier:
    """Brings values that open nothing; there is no code to bring."""

    def deliver(self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, parcel: object) -> int | None:
        raise AssertionError("these stories bring no code")

    def secrets(
        self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, keys: Sequence[str]
    ) -> Mapping[str, str]:
        return dict.fromkeys(keys, "redacted")


@dataclass
class Ground:
    """Where a story takes place: the same to it whether it is taped, replayed or lived."""

    settings: Settings
    clock: MovedClock
    folder: Path
    namespace: str
    told: list[Step] = field(default_factory=list)
    opened: list[Cluster] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster = self.open(ADMIN, None)
        self.powerless = self.open(POWERLESS, None)

    def open(self, context: str | None, namespace: str | None) -> Cluster:
        access = config.read(self.settings).access(context, namespace)
        self.opened.append(Cluster(access, self.settings, self.clock, self.folder / "kube"))
        return self.opened[-1]

    def service(self) -> VolcanoBackend:
        """The service, in a daemon that has just started."""
        return room.make(
            Means(
                open=self.open,
                facts=lambda spec, at: Facts(at),
                archive=lambda code: self.folder / "code.tar.gz",
                courier=Courier(),
                memory=Memory(self.folder / "memory", self.clock),
                clock=self.clock,
                tell=lambda aj_id, step: self.told.append(step),
            )
        )

    def close(self) -> None:
        for one in self.opened:
            one.close()


Story = Callable[[Ground], None]


@contextlib.contextmanager
def replaying(clock: MovedClock, folder: Path) -> Iterator[Ground]:
    """Serve a story from its tape: nobody is at this address."""
    with _ground(clock, folder, f"https://{SERVER}", {}, NAMESPACE, BEARER, BEARER) as ground:
        yield ground


@contextlib.contextmanager
def living(kubeconfig: Path, clock: MovedClock, folder: Path, tape: KubeTape | None = None) -> Iterator[Ground]:
    """Let a story happen on a real cluster, whose user may do everything; it is as it was before afterwards."""
    settings = Settings({"KUBECONFIG": str(kubeconfig)})
    hand = Hand(config.read(settings).access(), settings, folder)
    namespace = f"aj-test-{secrets.token_hex(4)}"
    try:
        token = hand.furnish(namespace)
        if tape is not None:
            tape.names = {hand.netloc: SERVER, namespace: NAMESPACE}
        with _ground(clock, folder, hand.server, hand.cluster, namespace, hand.token, token) as ground:
            yield ground
    finally:
        if tape is not None:
            tape.names = {}  # the rest is not the story's
        hand.clear(namespace)


@contextlib.contextmanager
def _ground(
    clock: MovedClock, folder: Path, server: str, about: Mapping[str, object], namespace: str, *tokens: object
) -> Iterator[Ground]:
    names = (ADMIN, POWERLESS)
    users = [token if isinstance(token, dict) else {"token": token} for token in tokens]
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": ADMIN,
        "clusters": [{"name": ADMIN, "cluster": {**about, "server": server}}],
        "users": [{"name": name, "user": user} for name, user in zip(names, users)],
        "contexts": [
            {"name": name, "context": {"cluster": ADMIN, "user": name, "namespace": namespace}} for name in names
        ],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    ground = Ground(Settings({"KUBECONFIG": str(path)}), clock, folder, namespace)
    try:
        yield ground
    finally:
        ground.close()


class Hand:
    """What makes a place for a story on a real cluster, and takes it away; it is on no tape."""

    def __init__(self, access: config.Access, settings: Settings, folder: Path) -> None:
        raw = yaml.safe_load(Path(settings.env["KUBECONFIG"]).read_text())
        (context,) = [one["context"] for one in raw["contexts"] if one["name"] == access.context]
        (self.cluster,) = [dict(one["cluster"]) for one in raw["clusters"] if one["name"] == context["cluster"]]
        (self.token,) = [one["user"] for one in raw["users"] if one["name"] == context["user"]]
        self.server = access.server
        self.netloc = access.server.partition("//")[2]
        self._cluster = Cluster(access, settings, MovedClock(at=time.time()), folder / "hand")

    def furnish(self, namespace: str) -> str:
        """Make a namespace, a claim, a closed queue and somebody without rights; returns that one's token."""
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
        kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        self._ask("POST", queues, {**kind, "metadata": {"name": CLOSED}, "spec": {"weight": 1}}, fine=(201, 409))
        self._ask("PATCH", f"{queues}/{CLOSED}/status", {"status": {"state": "Closed"}})
        claim = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        claim |= {"resources": {"requests": {"storage": "1Gi"}}}
        here = f"/api/v1/namespaces/{namespace}"
        self._ask("POST", f"{here}/persistentvolumeclaims", {"metadata": {"name": CLAIM}, "spec": claim})
        self._ask("POST", f"{here}/serviceaccounts", {"metadata": {"name": NOBODY}})
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        found = self._ask("POST", f"{here}/serviceaccounts/{NOBODY}/token", asked)
        return str(found["status"]["token"])

    def clear(self, namespace: str) -> None:
        """Take away all that was made."""
        for path in (
            f"/apis/batch.volcano.sh/v1alpha1/namespaces/{quote(namespace)}/jobs",
            f"/apis/scheduling.volcano.sh/v1beta1/queues/{CLOSED}",
            f"/api/v1/namespaces/{quote(namespace)}",
        ):
            self._ask("DELETE", path, {"propagationPolicy": "Background"}, fine=(200, 202, 404))
        self._cluster.close()

    def _ask(self, method: str, path: str, body: object, *, fine: tuple[int, ...] = (200, 201)) -> Any:
        configuration = self._cluster.configuration()
        pool = urllib3.PoolManager(
            ca_certs=configuration.ssl_ca_cert,
            cert_file=configuration.cert_file,
            key_file=configuration.key_file,
            cert_reqs="CERT_REQUIRED" if configuration.verify_ssl else "CERT_NONE",
        )
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": kind, "Authorization": configuration.api_key.get("authorization", "")}
        answer = pool.request(method, self.server + path, body=json.dumps(body), headers=headers, timeout=30)
        pool.clear()
        assert answer.status in fine, f"{method} {path}: {answer.status} {answer.data.decode()}"
        return json.loads(answer.data)
