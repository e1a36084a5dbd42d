"""The nodes of a cluster of the tests: pods come up or do not, their volumes are folders, and commands really run."""

from __future__ import annotations

import base64
import copy
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.servers import kube_exec
from tests.servers.kube_store import Store, kind_of

PODS = kind_of("pods")
NODE = "node-1"
SYSTEM = ("bin", "sbin", "usr", "lib", "lib64", "lib32", "etc", "dev", "proc", "sys")
# In a namespace of its own a pod sees the machine's programs, its own volumes, and nothing else.
ENTER = """
set -eu
new=$1; shift
mount -t tmpfs -o mode=755 tmpfs "$new"
for name in {system}; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$new/$name"
  elif [ -d "/$name" ]; then mkdir "$new/$name"; mount --rbind "/$name" "$new/$name"; fi
done
mkdir -m 1777 "$new/tmp"
mkdir -p "$new/root" "$new/var/tmp" "$new/mnt"
for bound in {bound}; do mkdir -p "$new$bound"; mount --rbind "$bound" "$new$bound"; done
while [ "$1" != -- ]; do mkdir -p "$new$2"; mount --bind "$1" "$new$2"; shift 2; done
shift
cd "$new"
exec chroot . "$@"
"""


@dataclass(frozen=True)
class Fate:
    """What becomes of a new pod. Each look at it is one step; the last step stays."""

    steps: tuple[Mapping[str, object], ...]
    events: tuple[tuple[str, str, str], ...] = ()  # type, reason, message


def running() -> Mapping[str, object]:
    """The status of a pod that runs and is ready."""
    return _status("Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, ready=True)


def waiting(reason: str, message: str = "") -> Mapping[str, object]:
    """The status of a pod whose container does not start."""
    return _status("Pending", {"waiting": {"reason": reason, "message": message}})


def ended(code: int, reason: str = "", *, phase: str = "") -> Mapping[str, object]:
    """The status of a pod whose container has ended."""
    why = reason or ("Completed" if code == 0 else "Error")
    return _status(phase or ("Failed" if code else "Succeeded"), {"terminated": {"exitCode": code, "reason": why}})


def comes_up(after: int = 0) -> Fate:
    """Running and ready, after some looks."""
    return Fate((*[waiting("ContainerCreating")] * after, running()))


def no_image(reason: str = "ImagePullBackOff", words: str = "not found") -> Fate:
    """An image that cannot be had."""
    message = f'Back-off pulling image: "{words}"'
    return Fate((waiting("ContainerCreating"), waiting(reason, message)), (("Warning", "Failed", message),))


def unschedulable(words: str = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.") -> Fate:
    """No node has room."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    status = {"phase": "Pending", "conditions": [condition], "nodeName": ""}
    return Fate((status,), (("Warning", "FailedScheduling", words),))


def evicted(after: int = 1, words: str = "The node was low on resource: memory.") -> Fate:
    """Runs for some looks, then is put out."""
    status = {"phase": "Failed", "reason": "Evicted", "message": words}
    return Fate((*[running()] * after, status), (("Warning", "Evicted", words),))


def exits(code: int, reason: str = "", after: int = 1) -> Fate:
    """Runs for some looks, then its container ends."""
    return Fate((*[running()] * after, ended(code, reason)))


def _status(phase: str, state: Mapping[str, object], *, ready: bool = False) -> Mapping[str, object]:
    container = {"ready": ready, "restartCount": 0, "state": state, "started": ready}
    conditions = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "True" if ready else "False"},
    ]
    return {"phase": phase, "conditions": conditions, "containerStatuses": [container]}


@dataclass
class Log:
    """What a container said: lines with their moments. While it is open, who follows it waits for more."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    is_open: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def say(self, *words: str, at: float | None = None) -> None:
        """Add lines, one second after the last unless a moment is given."""
        with self.changed:
            for word in words:
                moment = at if at is not None else 1_767_225_600.0 + len(self.lines)
                stamp = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
                self.lines.append((stamp, word))
            self.changed.notify_all()

    def shut(self) -> None:
        """Say no more."""
        with self.changed:
            self.is_open = False
            self.changed.notify_all()


@dataclass
class Nodes:
    """All pods of a cluster below one folder."""

    store: Store
    root: Path
    fates: list[tuple[str, Fate]] = field(default_factory=list)
    logs: dict[tuple[str, str, str], Log] = field(default_factory=dict)
    before: dict[tuple[str, str, str], Log] = field(default_factory=dict)  # of containers that were started anew
    execs: list[kube_exec.Exec] = field(default_factory=list)
    turns: list[tuple[str, kube_exec.Turn]] = field(default_factory=list)
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _paths: dict[str, list[Mapping[str, object]]] = field(default_factory=dict)
    _events: dict[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    made: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _is_over: bool = False

    def claim(self, namespace: str, name: str) -> Path:
        """The folder behind a claim of a volume."""
        folder = self.root / "claims" / namespace / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def fate(self, words: str, fate: Fate) -> None:
        """Let pods whose name holds these words become so."""
        self.fates.insert(0, (words, fate))

    def begin(self, pod: dict) -> None:
        """A pod was made: give it a node and its first status."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        fate = next((fate for words, fate in self.fates if words in name), comes_up())
        self._paths[uid], self._events[uid] = list(fate.steps), fate.events
        self._step(pod)

    def look(self, pod: dict) -> None:
        """A pod was looked at: one step further."""
        if len(self._paths.get(pod["metadata"]["uid"], [])) > 0 and not pod["metadata"].get("deletionTimestamp"):
            self._step(pod)

    def become(self, pod: dict, status: Mapping[str, object]) -> None:
        """Let a pod be so from now on."""
        self._paths[pod["metadata"]["uid"]] = [status]
        self._step(pod)

    def log(self, namespace: str, pod: str, container: str = "main", *, previous: bool = False) -> Log:
        """The log of a container; it begins empty and closed."""
        kept = self.before if previous else self.logs
        return kept.setdefault((namespace, pod, container), Log())

    def event(self, about: dict, kind: str, reason: str, message: str, *, count: int = 1) -> None:
        """Note an event about an object."""
        meta = about["metadata"]
        self.made += 1
        moment = self.store.moment()
        document = {
            "metadata": {"name": f"{meta['name']}.{self.made:016x}"},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": meta["name"],
                "namespace": meta["namespace"],
                "uid": meta["uid"],
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": count,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": {"component": "kubelet"},
        }
        events = kind_of("events")
        new = self.store.created(events, meta["namespace"], f"{meta['name']}.{self.made:016x}", document)
        self.store.keep(events, new, "ADDED")

    def start(
        self, pod: Mapping, container: Mapping, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Really start a command where the pod's volumes stand at their places."""
        places = self._places(pod, container)
        words = self._entered(places, command)
        values = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/root", **(env or self.env(pod, container))}
        with self._guard:
            if self._is_over:
                raise OSError("the nodes are gone")
            child = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=values,
                start_new_session=True,
            )
            self.children.append(child)
        return child

    def env(self, pod: Mapping, container: Mapping) -> dict[str, str]:
        """The variables of a container, expanded as a node does it."""
        found: dict[str, str] = {}
        for one in container.get("env") or []:
            if "valueFrom" in one:
                found[one["name"]] = self._from(pod, one["valueFrom"])
            else:
                found[one["name"]] = expanded(one.get("value", ""), found)
        return found

    def folder(self, pod: Mapping) -> Path:
        """The folder of one pod."""
        folder = self.root / "pods" / pod["metadata"]["uid"]
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def close(self) -> None:
        """End every command that still runs, and start no other. Who serves a command closes its streams."""
        with self._guard:
            self._is_over = True
        for child in self.children:
            if child.poll() is None:
                kube_exec.kill(child)
            child.wait(10)
        for log in (*self.logs.values(), *self.before.values()):
            log.shut()

    def _step(self, pod: dict) -> None:
        path = self._paths[pod["metadata"]["uid"]]
        status = copy.deepcopy(dict(path[0]))
        if len(path) > 1:
            path.pop(0)
        else:
            path.clear()
            for kind, reason, message in self._events.pop(pod["metadata"]["uid"], ()):
                self.event(pod, kind, reason, message)
        node = status.pop("nodeName", NODE)
        if node:
            pod["spec"]["nodeName"] = node
        for number, entry in enumerate(status.get("containerStatuses", [])):
            container = pod["spec"]["containers"][number]
            entry |= {"name": container["name"], "image": container["image"], "imageID": "", "lastState": {}}
        if node:
            status |= {"hostIP": "10.0.0.1", "podIP": "10.1.0.1", "startTime": self.store.moment()}
        pod["status"] = {**pod.get("status", {}), **status}
        self.store.keep(PODS, pod)

    def _from(self, pod: Mapping, origin: Mapping) -> str:
        path = origin.get("fieldRef", {}).get("fieldPath", "")
        if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
            return (pod["metadata"].get(found[1]) or {}).get(found[2], "")
        value: object = pod
        for word in path.split("."):
            value = value.get(word, "") if isinstance(value, Mapping) else ""
        return str(value)

    def _places(self, pod: Mapping, container: Mapping) -> list[tuple[Path, str]]:
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
        found = []
        for mount in sorted(container.get("volumeMounts") or [], key=lambda one: one["mountPath"]):
            folder = self._volume(pod, volumes[mount["name"]])
            found.append((folder / mount.get("subPath", ""), mount["mountPath"]))
        return found

    def _volume(self, pod: Mapping, volume: Mapping) -> Path:
        namespace = pod["metadata"]["namespace"]
        if "persistentVolumeClaim" in volume:
            return self.claim(namespace, volume["persistentVolumeClaim"]["claimName"])
        folder = self.folder(pod) / "volumes" / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        if "secret" in volume:
            self._fill(folder, namespace, volume["secret"])
        return folder

    def _fill(self, folder: Path, namespace: str, source: Mapping) -> None:
        kind = kind_of("secrets")
        kept = self.store.find(kind, namespace, source["secretName"])
        for name, value in ((kept or {}).get("data") or {}).items():
            path = folder / name
            path.unlink(missing_ok=True)
            path.write_bytes(base64.b64decode(value))
            path.chmod(source.get("defaultMode", 0o644))

    def _entered(self, places: list[tuple[Path, str]], command: Sequence[str]) -> list[str]:
        if not places:
            return list(command)
        if not _namespaces():
            swaps = sorted(((place, str(folder)) for folder, place in places), key=lambda swap: -len(swap[0]))
            return [_swapped(word, swaps) for word in command]
        new = self.root / "enter"
        new.mkdir(exist_ok=True)
        bound = " ".join(f"'{path}'" for path in _bound())
        script = ENTER.format(system=" ".join(SYSTEM), bound=bound)
        pairs = [str(word) for folder, place in places for word in (folder, place)]
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", *user, "--mount", "sh", "-c", script, "sh", str(new), *pairs, "--", *command]


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Put in `$(NAME)` as a node does: `$$` is a dollar, and a name that is not known stays."""
    return re.sub(
        r"\$(\$|\(([^)]*)\))",
        lambda found: "$" if found[1] == "$" else known.get(found[2], found[0]),
        text,
    )


def _swapped(word: str, swaps: list[tuple[str, str]]) -> str:
    for place, folder in swaps:
        word = re.sub(re.escape(place) + r"(?=/|\W|\Z)", lambda _, folder=folder: folder, word)
    return word


def _bound() -> list[Path]:
    """What a pod of the tests needs of the machine besides its programs: the interpreter's own folder."""
    found = {Path(sys.prefix), Path(sys.base_prefix)}
    return sorted(path for path in found if path.parts[1] not in SYSTEM)


_KNOWN: list[bool] = []


def _namespaces() -> bool:
    """Whether this machine lets us mount in a namespace of our own; else paths are swapped in the command."""
    if not _KNOWN:
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        tool = shutil.which("unshare")
        words = ["unshare", *user, "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
        _KNOWN.append(bool(tool) and subprocess.run(words, capture_output=True).returncode == 0)
    return _KNOWN[0]
