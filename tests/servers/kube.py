"""A Kubernetes API server on loopback, with Volcano's kinds: it checks every body and answers as the real one does.

It is no cluster: nothing schedules, and a pod is what the test lets become of it. What it proves is that what we
send is legal by the published schemas, and that we understand what may be answered. Commands of an exec really run,
where the pod's volumes stand at their places.

    with kube.running(folder) as cluster:       # a namespace, an open queue, a bound claim, a kubeconfig
        cluster.config                          # its path
        cluster.server.on("POST /apis/batch", kube.too_many(), Cut.AFTER_BODY)
        cluster.nodes.fate("-upload", no_image())
        cluster.play("train-x", "Running")      # Volcano's part: pods of a Job, and its phase
        cluster.said()                          # every byte that was sent, to search for secrets
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import trustme
import yaml

from tests.servers import kube_exec
from tests.servers.kube_api import NAMESPACE, TOKEN, Asked, Kube, User
from tests.servers.kube_pods import Fate, Log, Nodes, comes_up, ended, evicted, exits, no_image, unschedulable, waiting
from tests.servers.kube_pods import running as runs
from tests.servers.kube_store import Store, kind_of
from tests.servers.kube_words import Denied, Refused, status, too_many, unavailable
from tests.servers.loopback import Answer, Cut, Got, Loopback, Stall, _Handler

__all__ = [
    "Answer",
    "CLAIM",
    "CONTEXT",
    "Cluster",
    "Cut",
    "Denied",
    "Fate",
    "Got",
    "Held",
    "Kube",
    "Log",
    "NAMESPACE",
    "SERVICE",
    "Stall",
    "TOKEN",
    "Turn",
    "Undone",
    "User",
    "add_claim",
    "comes_up",
    "ended",
    "evicted",
    "exits",
    "furnish",
    "no_image",
    "running",
    "runs",
    "status",
    "too_many",
    "unavailable",
    "unschedulable",
    "waiting",
]

Turn = kube_exec.Turn
CONTEXT = "lab"
CLAIM = "team-data"
SERVICE = "aj-trainer"  # an account of the namespace


@dataclass(frozen=True)
class Undone:
    """All was read, nothing was done, and the connection breaks."""


@dataclass
class Held:
    """The request waits until the test lets it go on; what it asks for is done before or after."""

    is_done: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


class Server(Loopback):
    """The server's ears. Scripts of `on` look at `METHOD /path?query`."""

    def __init__(self, kube: Kube, tls: ssl.SSLContext | None) -> None:
        self.kube = kube
        self.log_cuts: list[int] = []  # after so many bytes, one for each request of a log
        super().__init__(kube.answer, tls)
        self.RequestHandlerClass = _Streams


class _Streams(_Handler):
    """Adds what does not end with one answer: logs, watches and execs."""

    server: Server

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        fault = self.server.take(f"{self.command} {self.path}")
        if fault is Cut.AFTER_HEADERS:
            self._cut()
            return
        got = Got(
            self.command,
            parts.path,
            tuple(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )
        with self.server.lock:
            self.server.got.append(got)
        if isinstance(fault, Undone):
            self._cut()
        elif isinstance(fault, Held):
            self._hold(got, fault)
        elif isinstance(fault, Answer):
            self._give(fault, None)
        elif parts.path.endswith("/exec"):
            self._exec(got)
        elif parts.path.endswith("/log") and fault is None:
            self._log(got)
        elif got.value("watch") in ("1", "true") and fault is None:
            self._watch(got)
        else:
            self._give(self.server.answer(got), fault)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = handle_any

    def _hold(self, got: Got, held: Held) -> None:
        answer = self.server.answer(got) if held.is_done else None
        held.reached.set()
        held.release.wait(60)
        with contextlib.suppress(OSError):  # who waited may be gone
            self._give(answer or self.server.answer(got), None)

    def _asked(self, got: Got) -> tuple[Asked, dict] | None:
        """Whom a stream is about; None when it was refused, and answered."""
        try:
            with self.server.kube.store.changed:
                asked = self.server.kube.asked(got)
                pod = self.server.kube._found(asked) if asked.name else {}
        except Refused as refused:
            self._give(refused.answer, None)
            return None
        return asked, pod

    def _log(self, got: Got) -> None:
        found = self._asked(got)
        if found is None:
            return
        asked, pod = found
        query = asked.query
        names = [one["name"] for one in pod["spec"]["containers"]]
        container = query.get("container") or names[0]
        refused = _no_log(pod, container, names, query, self.server.kube.nodes)
        if refused is not None:
            self._give(refused, None)
            return
        is_previous = query.get("previous") in ("1", "true")
        log = self.server.kube.nodes.log(asked.namespace, asked.name, container, previous=is_previous)
        cut = self.server.log_cuts.pop(0) if self.server.log_cuts else None
        self._begin_stream("text/plain")
        lines = _chosen(log, query)
        is_followed = query.get("follow") in ("1", "true")
        self._stream_lines(log, lines, is_followed, query.get("timestamps") in ("1", "true"), cut)

    def _stream_lines(
        self, log: Log, lines: list[tuple[str, str]], is_followed: bool, with_moments: bool, cut: int | None
    ) -> None:
        sent, at = 0, len(log.lines)
        with contextlib.suppress(OSError):
            while True:
                for moment, words in lines:
                    piece = (f"{moment} {words}\n" if with_moments else words + "\n").encode()
                    if cut is not None and sent + len(piece) > cut:
                        self._chunk(piece[: cut - sent])
                        self._cut()
                        return
                    self._chunk(piece)
                    sent += len(piece)
                if not is_followed:
                    break
                with log.changed:
                    while at == len(log.lines) and log.is_open and not self.server.closing.is_set():
                        log.changed.wait(0.5)
                    lines, at = log.lines[at:], len(log.lines)
                    if not lines and (not log.is_open or self.server.closing.is_set()):
                        break
            self._chunk(b"")

    def _watch(self, got: Got) -> None:
        found = self._asked(got)
        if found is None:
            return
        asked, store = found[0], self.server.kube.store
        at = int(got.value("resourceVersion") or store.version)
        limit = time.monotonic() + float(got.value("timeoutSeconds") or 60)
        self._begin_stream("application/json")
        with contextlib.suppress(OSError):
            while not self.server.closing.is_set() and time.monotonic() < limit:
                with store.changed:
                    new = store.since(at, asked.kind, asked.namespace)
                    if not new:
                        store.changed.wait(0.1)
                for seen, what, document in new:
                    at = seen
                    self._chunk(json.dumps({"type": what, "object": document}).encode() + b"\n")
            self._chunk(b"")

    def _begin_stream(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _exec(self, got: Got) -> None:
        found = self._asked(got)
        if found is None:
            return
        pod = found[1]
        command = tuple(value for name, value in got.query if name == "command")
        names = [one["name"] for one in pod["spec"]["containers"]]
        container = got.value("container") or names[0]
        protocol = kube_exec.chosen(got.headers.get("sec-websocket-protocol", ""))
        refused = _no_exec(pod, container, names, command)
        if refused is None and (got.headers.get("upgrade", "").lower() != "websocket" or protocol is None):
            refused = status(400, "Upgrade request required")
        if refused is not None:
            self._give(refused, None)
            return
        assert protocol is not None
        self._speak(got, pod, container, command, protocol)

    def _speak(self, got: Got, pod: dict, container: str, command: tuple[str, ...], protocol: str) -> None:
        nodes, about = self.server.kube.nodes, pod["metadata"]
        self.send_response(101)
        for name, value in (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", kube_exec.accept(got.headers["sec-websocket-key"])),
            ("Sec-WebSocket-Protocol", protocol),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        one = kube_exec.Exec(about["namespace"], about["name"], container, command, protocol)
        with self.server.lock:
            nodes.execs.append(one)
            turn = next((entry for entry in nodes.turns if entry[0] in " ".join(command)), None)
            if turn is not None:
                nodes.turns.remove(turn)
        (spec,) = [entry for entry in pod["spec"]["containers"] if entry["name"] == container]
        wants = frozenset(word for word in ("stdin", "stdout", "stderr") if got.value(word) in ("1", "true", "True"))
        line = kube_exec.Socket(self.connection)
        kube_exec.serve(line, one, lambda: nodes.start(pod, spec, command), wants, turn[1] if turn else None)


def _no_exec(pod: Mapping, container: str, names: list[str], command: tuple[str, ...]) -> Answer | None:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    phase = pod.get("status", {}).get("phase")
    if container not in names:
        return status(400, f"container {container} is not valid for pod {name}")
    if phase in ("Succeeded", "Failed"):
        return status(400, f"cannot exec into a container in a completed pod; current phase is {phase}")
    if not pod["spec"].get("nodeName"):
        return status(400, f"pod {name} does not have a host assigned")
    if not command:
        return status(400, "you must specify at least 1 command for the container")
    if phase != "Running":
        words = f'unable to upgrade connection: container not found ("{container}")'
        return status(500, words, details={"name": f"{name}_{namespace}"})
    return None


def _no_log(pod: Mapping, container: str, names: list[str], query: Mapping[str, str], nodes: Nodes) -> Answer | None:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    if container not in names:
        return status(400, f"container {container} is not valid for pod {name}")
    if not query.get("container") and len(names) > 1:
        listed = " ".join(names)
        return status(400, f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    if (query.get("tailLines") or "0").startswith("-"):
        words = f"Invalid value: {query['tailLines']}: must be greater than or equal to 0"
        cause = {"reason": "FieldValueInvalid", "message": words, "field": "tailLines"}
        details = {"name": name, "kind": "PodLogOptions", "causes": [cause]}
        return status(422, f'PodLogOptions "{name}" is invalid: tailLines: {words}', details=details)
    if not pod["spec"].get("nodeName"):
        return Answer(204)
    if query.get("previous") in ("1", "true"):
        if (namespace, name, container) not in nodes.before:
            return status(400, f'previous terminated container "{container}" in pod "{name}" not found')
        return None
    states = {one["name"]: one["state"] for one in pod.get("status", {}).get("containerStatuses", [])}
    waits = states.get(container, {}).get("waiting")
    if waits:
        words = f'container "{container}" in pod "{name}" is waiting to start: {waits["reason"]}'
        return status(400, words)
    return None


def _chosen(log: Log, query: Mapping[str, str]) -> list[tuple[str, str]]:
    with log.changed:
        lines = list(log.lines)
    since = query.get("sinceTime", "")
    if since:
        lines = [line for line in lines if line[0] >= since.replace("Z", "") or line[0].startswith(since[:-1])]
    if (tail := query.get("tailLines")) is not None:
        lines = lines[-int(tail) :] if int(tail) else []
    return lines


@dataclass
class Cluster:
    """All of it: `kube` by what it knows, `nodes` by what becomes of pods, `server` by what happens to requests."""

    kube: Kube
    nodes: Nodes
    server: Server
    config: Path
    authority: bytes

    def said(self) -> bytes:
        """Everything that was sent to the server, and through its execs: to be searched for secrets."""
        parts: list[bytes] = []
        with self.server.lock:
            for got in self.server.got:
                parts += [got.target.encode(), *(f"{name}={value}".encode() for name, value in got.query)]
                parts += [value.encode() for name, value in got.headers.items() if name != "authorization"]
                parts += [got.body, *_decoded(got.body)]
            parts += [one.everything for one in self.nodes.execs]
        return b"\n".join(parts)

    def requests(self, method: str = "", words: str = "") -> list[Got]:
        """The requests of a method whose path and query hold some words."""
        with self.server.lock:
            return [got for got in self.server.got if got.method.startswith(method) and words in _whole(got)]

    def play(self, name: str, phase: str, *, namespace: str = NAMESPACE, message: str = "") -> list[dict]:
        """Do Volcano's part for a Job: a phase, and pods while it has begun. Returns the pods."""
        with self.kube.store.changed:
            job = self.kube.stored("jobs", name, namespace)
            if phase not in ("Pending", "Inqueue"):
                self._pods(job)
            pods = [self.kube.stored("pods", pod, namespace) for pod in self._of(job)]
            job["status"] = {**job.get("status", {}), **_counts(job, pods, phase, message, self.kube.store.moment())}
            self.kube.store.keep(kind_of("jobs"), job)
            return pods

    def write(self, path: Path, *, context: str = CONTEXT, **changes: object) -> Path:
        """Write a kubeconfig that leads here. `changes` go to its user (`exec`, `token`) or, if named so, elsewhere."""
        namespace = changes.pop("namespace", NAMESPACE)
        user = changes or {"token": TOKEN}
        about = {"cluster": "here", "user": "me"} | ({"namespace": namespace} if namespace else {})
        cluster = {
            "server": self.server.url,
            "certificate-authority-data": base64.b64encode(self.authority).decode(),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": "here", "cluster": cluster if self.authority else {"server": self.server.url}}],
            "users": [{"name": "me", "user": user}],
            "contexts": [{"name": context, "context": about}],
        }
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        path.chmod(0o600)
        return path

    def _pods(self, job: dict) -> None:
        about, kind = job["metadata"], kind_of("pods")
        for task in job["spec"]["tasks"]:
            for index in range(task.get("replicas", 1)):
                name = f"{about['name']}-{task['name']}-{index}"
                if self.kube.store.find(kind, about["namespace"], name) is None:
                    self.kube.add("pods", name, about["namespace"], **_pod(job, task, index))

    def _of(self, job: dict) -> list[str]:
        about = job["metadata"]
        pods = self.kube.store.page(
            kind_of("pods"), about["namespace"], {"labelSelector": f"volcano.sh/job-name={about['name']}"}
        )
        return [one["metadata"]["name"] for one in pods.items]


def _pod(job: Mapping, task: Mapping, index: int) -> dict[str, object]:
    """A pod of a Job as Volcano makes it."""
    about, template = job["metadata"], task["template"]
    marks = {
        "volcano.sh/job-name": about["name"],
        "volcano.sh/job-namespace": about["namespace"],
        "volcano.sh/queue-name": job["spec"].get("queue", "default"),
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": task["name"],
    }
    extra = {"scheduling.k8s.io/group-name": f"{about['name']}-{about['uid']}", "volcano.sh/job-version": "0"}
    own = template.get("metadata", {})
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": about["name"], "uid": about["uid"]}
    metadata = {
        "labels": {**own.get("labels", {}), **marks},
        "annotations": {**own.get("annotations", {}), **marks, **extra, "volcano.sh/template-uid": about["uid"]},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    spec = {"schedulerName": "volcano", **template["spec"]}
    indexes = [{"name": name, "value": str(index)} for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
    spec["containers"] = [{**one, "env": [*one.get("env", []), *indexes]} for one in spec["containers"]]
    spec |= {"hostname": f"{about['name']}-{task['name']}-{index}", "subdomain": about["name"]}
    return {"metadata": metadata, "spec": spec}


def _counts(job: Mapping, pods: list[dict], phase: str, message: str, moment: str) -> dict[str, object]:
    phases = [pod["status"]["phase"] for pod in pods]
    tally = {word.lower(): phases.count(word) for word in ("Pending", "Running", "Succeeded", "Failed")}
    state = {"phase": phase, "lastTransitionTime": moment} | ({"message": message} if message else {})
    found = {word: count for word, count in tally.items() if count}
    return {**found, "state": state, "minAvailable": job["spec"].get("minAvailable", 0)}


def _whole(got: Got) -> str:
    return got.path + "?" + "&".join(f"{name}={value}" for name, value in got.query)


def _decoded(body: bytes) -> Iterator[bytes]:
    """What a Secret's data mean."""
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        for value in (json.loads(body).get("data") or {}).values():
            yield base64.b64decode(value)


@contextlib.contextmanager
def running(folder: Path, *, tls: bool = True, furnished: bool = True) -> Iterator[Cluster]:
    """Run a server for the length of a block, its files below a folder. Scripts that nothing used fail it."""
    store = Store()
    nodes = Nodes(store, folder / "nodes")
    kube = Kube(nodes, store)
    context, authority = _certified() if tls else (None, b"")
    server = Server(kube, context)
    cluster = Cluster(kube, nodes, server, folder / "kubeconfig", authority)
    try:
        (folder / "nodes").mkdir(parents=True, exist_ok=True)
        cluster.write(cluster.config)
        if furnished:
            furnish(cluster)
        yield cluster
    finally:
        nodes.close()
        server.close()
    if faults := server.errors + [f"not used: {words}" for words in server.left()]:
        raise AssertionError("\n".join(faults))


def furnish(cluster: Cluster) -> None:
    """Put in what a submission needs: a namespace, queues, a bound claim."""
    kube = cluster.kube
    for name in ("default", NAMESPACE):
        kube.add("namespaces", name)
    for name, state in (("root", "Open"), ("default", "Open"), ("closed", "Closed")):
        kube.add("queues", name, spec={"weight": 1, "reclaimable": True}, status={"state": state})
    add_claim(cluster, CLAIM)
    kube.add("serviceaccounts", SERVICE)


def add_claim(cluster: Cluster, name: str, *, mode: str = "ReadWriteMany", phase: str = "Bound") -> None:
    """Put in a claim of a volume."""
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Ti"}}, "storageClassName": "shared"}
    cluster.kube.add("persistentvolumeclaims", name, spec=spec, status={"phase": phase, "accessModes": [mode]})


def _certified() -> tuple[ssl.SSLContext, bytes]:
    """Certificates of the server, and of the authority to trust."""
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.configure_cert(context)
    return context, authority.cert_pem.bytes()
