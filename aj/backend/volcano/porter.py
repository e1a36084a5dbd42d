"""The pod that brings code to a volume: small, without rights, there for one upload, and gone after it.

It is noted on disk before it is made, so that what a killed daemon leaves is found again. While it runs nothing keeps
it but the upload itself: ten minutes without one, and it ends by itself. It is known by its uid: what has taken its
name meanwhile is somebody else's.
"""

from __future__ import annotations

import contextlib
import functools
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from aj.backend.volcano import gang, names, pods
from aj.backend.volcano.options import Options
from aj.backend.volcano.program import escaped
from aj.backend.volcano.variables import Facts
from aj.base import redact, text
from aj.base.errors import AjError, NotFound, OutcomeUnknown, Refused, RemoteError, TimedOut, Unavailable
from aj.base.noun import dataclass
from aj.kube.client import Cluster
from aj.kube.resources import EVENTS, PODS
from aj.kube.times import seconds
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.net.document import Document
from aj.store.traces import HELPER, Trace, Traces

CONTAINER = "upload"
ROOT = "/mnt/aj-volume"  # where the volume stands in this pod; no image has anything there
DEADLINE_S = 6 * 3600  # whatever happens, it is over then
IDLE_S = 600  # without an upload
READY_S = 300.0
LOOK_S = 1.0  # between two looks at a pod that is coming or going
PATIENCE_S = 30.0  # a scheduler may say no for a moment, while a volume is being bound
GONE_S = 120.0  # a node that is alive takes seconds
TRIES = 4  # of a removal whose answer is lost
LONG_OVER_S = 86400.0  # nobody looks any more at how one ended that was made so long ago
OWNER = "aj-owner"  # the annotation that says whose daemon made it
_LIVE: set[str] = set()  # the jobs whose pods this very process uses
_GUARD = threading.Lock()
_SCRIPTS = Path(__file__).parent / "scripts"
_NEVER = ("ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError")
_BROKEN = ("CreateContainerError", "RunContainerError", "CrashLoopBackOff")
_HINT = "`volcano.helper_image`, `target.run_as`"


# What a pod needs to be let in at all: the same as the pods of its job.
BEARING = ("tolerations", "imagePullSecrets", "serviceAccountName", "securityContext")


@dataclass(frozen=True)
class Helper:
    """A pod that is to be. `owner` is the word of the state folder whose daemon makes it."""

    job: str
    namespace: str
    owner: str
    body: Mapping[str, Json]

    @property
    def name(self) -> str:
        return names.helper(self.job)


@dataclass(frozen=True)
class Pod:
    """A pod that runs."""

    name: str
    namespace: str
    uid: str
    node: str

    @property
    def label(self) -> str:
        """How it is named to a person."""
        return f"helper {self.name} on node {self.node}"


@functools.cache
def script(name: str) -> str:
    """Return one of the programs that run in it."""
    return (_SCRIPTS / name).read_text()


def of_job(spec: JobSpec, chosen: Options, facts: Facts, *, image: str, owner: str) -> Helper:
    """Return the pod for a job's code: with the job's account, user and tolerations, and nothing else of it.

    Raises TemplateError as `gang.roles`.
    """
    assert chosen.volume is not None, "without a volume nothing is brought there"
    accepted: list[Json] = []
    for role in gang.roles(spec, chosen):
        accepted += [one for one in pods.tolerations(chosen, facts, role) if one not in accepted]
    body = _body(spec.id, facts.namespace, chosen.volume.claim, image, owner, pods.bearing(chosen, accepted))
    return Helper(spec.id, facts.namespace, owner, body)


def of_claim(job: str, namespace: str, claim: str, pod: Mapping[str, Json], *, image: str, owner: str) -> Helper:
    """Return the pod for the code of a job that is on its cluster already, borne as its own `pod` is (a pod spec)."""
    bearing = {key: pod[key] for key in BEARING if pod.get(key)}
    return Helper(job, namespace, owner, _body(job, namespace, claim, image, owner, bearing))


def _body(job: str, namespace: str, claim: str, image: str, owner: str, bearing: Mapping[str, Json]) -> dict[str, Json]:
    resources: Json = {"cpu": "200m", "memory": "256Mi"}
    user = bearing.get("securityContext")
    is_someone = isinstance(user, Mapping) and bool(user.get("runAsUser"))
    container: dict[str, Json] = {
        "name": CONTAINER,
        "image": image,
        "command": ["sh", "-c"],
        "args": [escaped(script("keep.sh"))],
        "env": [
            {"name": name, "value": escaped(value)}
            for name, value in {
                "AJ_FOLDER": names.code_folder(ROOT, job),
                "AJ_IDLE": str(IDLE_S),
                "AJ_RECEIVE": script("receive.sh"),
                "AJ_TIDY": script("tidy.sh"),
            }.items()
        ],
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            **({"runAsNonRoot": True} if is_someone else {}),
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": pods.CLAIM, "mountPath": ROOT}],
    }
    spec: dict[str, Json] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": DEADLINE_S,
        "terminationGracePeriodSeconds": 0,
        "enableServiceLinks": False,
        **bearing,
        "automountServiceAccountToken": False,
        "volumes": [{"name": pods.CLAIM, "persistentVolumeClaim": {"claimName": claim}}],
        "containers": [container],
    }
    metadata: Json = {
        "name": names.helper(job),
        "namespace": namespace,
        "labels": names.labels(job),
        "annotations": {OWNER: owner},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pods.given(spec)}


@contextlib.contextmanager
def running(
    cluster: Cluster, wanted: Helper, traces: Traces, warn: Callable[[str], None] = lambda words: None
) -> Iterator[Pod]:
    """Have the pod run for the length of a block; then it is gone, whatever happened. `warn` hears when it is not.

    Raises Refused when the cluster does not take it, RemoteError when it does not start, TimedOut when that takes
    too long, and as `Cluster.create`.
    """
    context, now = cluster.access.context, cluster.clock.now()
    with _in_use(wanted.job):
        traces.note(Trace(HELPER, wanted.job, context, wanted.namespace, now, host=platform.node()))
        try:
            uid = _made(cluster, wanted)
        except (Refused, NotFound):
            traces.forget(HELPER, wanted.job)  # no pod was made, and what has its name may be somebody else's
            raise
        try:
            yield _ready(cluster, wanted, uid)
        finally:
            try:
                remove(cluster, wanted.name, wanted.namespace, uid)
                traces.forget(HELPER, wanted.job)
            except AjError as error:
                warn(f"pod {wanted.name} could not be removed: {error.message}; it is tried again later")


@contextlib.contextmanager
def _in_use(job: str) -> Iterator[None]:
    with _GUARD:
        _LIVE.add(job)
    try:
        yield
    finally:
        with _GUARD:
            _LIVE.discard(job)


def is_in_use(job: str) -> bool:
    """Tell whether this very process uses the pod of a job."""
    with _GUARD:
        return job in _LIVE


def check(cluster: Cluster, pod: Pod) -> None:
    """Raise RemoteError, with the pod's own reason, when it runs no more. Raises as `Cluster.get`."""
    found = cluster.find(PODS, pod.name, pod.namespace)
    if found is None or found.text("metadata", "uid") != pod.uid or found.text("metadata", "deletionTimestamp"):
        raise RemoteError(f"pod {pod.name} was removed by somebody else", code="helper-gone", hint="run again")
    phase = found.text("status", "phase")
    if phase != "Running":
        raise _failed(cluster, found, f"ended: {_reason(found) or phase}", hint="run again: it resumes")


def remove(cluster: Cluster, name: str, namespace: str, uid: str) -> None:
    """Remove the helper of this uid at once and wait until it is gone: only then may another node have its volume.

    Raises as `Cluster.delete`, TimedOut when its node does not let go of it.
    """
    for left in reversed(range(TRIES)):
        try:
            cluster.delete(PODS, name, namespace, uid=uid, grace_s=0)
            break
        except Refused as error:
            if error.code != "conflict":
                raise
            break  # another has its name by now
        except (OutcomeUnknown, Unavailable):
            if not left:
                raise
            cluster.clock.sleep(LOOK_S)
    until = cluster.clock.monotonic() + GONE_S
    while (found := cluster.find(PODS, name, namespace)) is not None and found.text("metadata", "uid") == uid:
        if cluster.clock.monotonic() > until:
            raise TimedOut(f"pod {name} is still there {GONE_S:g} s after it was removed")
        cluster.clock.sleep(LOOK_S)


def sweep(cluster: Cluster, namespace: str, owner: str, is_used: Callable[[str], bool]) -> list[str]:
    """Remove the helpers of this owner that no upload uses, by their labels, and return their jobs.

    Those of others go when they were made a day ago and are over; as long as they run they stay. Raises as
    `Cluster.list` and `remove`.
    """
    gone = []
    for pod in cluster.list(PODS, namespace, labels={names.MANAGED_BY: "aj"}):
        job = pod.text("metadata", "labels", names.ID) or ""
        is_helper = pod.text("metadata", "name") == names.helper(job)
        is_ours = pod.text("metadata", "annotations", OWNER) == owner and not is_used(job)
        if is_helper and (is_ours or _is_long_over(pod, cluster.clock.now())):
            remove(cluster, names.helper(job), namespace, pod.need_text("metadata", "uid"))
            gone.append(job)
    return gone


def _is_long_over(pod: Document, now: float) -> bool:
    made_at = seconds(pod.text("metadata", "creationTimestamp"))
    is_over = pod.text("status", "phase") in ("Succeeded", "Failed")
    return is_over and made_at is not None and now - made_at > LONG_OVER_S


def is_there(cluster: Cluster, job: str, namespace: str) -> bool:
    """Tell whether a job has a helper, whoever made it. Raises as `Cluster.get`."""
    return cluster.find(PODS, names.helper(job), namespace) is not None


# Coming up


def _made(cluster: Cluster, wanted: Helper) -> str:
    """Create the pod, or take over the one that is there; return its uid."""
    for is_last in (False, True):
        try:
            return cluster.create(PODS, wanted.body, wanted.namespace).need_text("metadata", "uid")
        except OutcomeUnknown:
            found = cluster.find(PODS, wanted.name, wanted.namespace)
            if found is not None:
                return found.need_text("metadata", "uid")
            raise
        except Refused as error:
            if error.code in ("admission", "invalid"):
                raise _refused(wanted.name, error) from error
            if error.code != "exists" or is_last:
                raise
        uid = _taken_over(cluster, wanted)
        if uid is not None:
            return uid
    raise AssertionError("the last try always returns or raises")


def _taken_over(cluster: Cluster, wanted: Helper) -> str | None:
    """Return the uid of a pod of ours that is there and may go on; what is there otherwise is removed."""
    found = cluster.find(PODS, wanted.name, wanted.namespace)
    if found is None:
        return None
    if found.text("metadata", "labels", names.ID) != wanted.job:
        raise Refused(f"pod {wanted.name} of namespace {wanted.namespace} is not ours", code="other-pod")
    is_alive = found.text("status", "phase") in ("Pending", "Running")
    if is_alive and not found.text("metadata", "deletionTimestamp"):
        return found.need_text("metadata", "uid")
    remove(cluster, wanted.name, wanted.namespace, found.need_text("metadata", "uid"))
    return None


def _ready(cluster: Cluster, wanted: Helper, uid: str) -> Pod:
    """Wait until the pod can be used."""
    began = cluster.clock.monotonic()
    while True:
        found = cluster.get(PODS, wanted.name, wanted.namespace)
        if found.text("metadata", "uid") != uid:
            raise RemoteError(f"pod {wanted.name} was replaced by somebody else", code="helper-gone", hint="run again")
        if _is_ready(found):
            return Pod(wanted.name, wanted.namespace, uid, found.text("spec", "nodeName") or "?")
        waited = cluster.clock.monotonic() - began
        problem = _problem(found, waited)
        if problem is not None:
            raise _failed(cluster, found, problem, hint=_HINT)
        if waited > READY_S:
            why = _reason(found) or found.text("status", "phase") or "it says nothing"
            raise TimedOut(f"pod {wanted.name} was not ready within {READY_S:g} s: {why}{_told(cluster, found)}")
        cluster.clock.sleep(LOOK_S)


def _is_ready(pod: Document) -> bool:
    conditions = {one.text("type"): one.text("status") for one in pod.each("status", "conditions")}
    return pod.text("status", "phase") == "Running" and conditions.get("Ready") == "True"


def _problem(pod: Document, waited: float) -> str | None:
    """Return why the pod will never be ready, or None."""
    phase = pod.text("status", "phase")
    if phase in ("Failed", "Succeeded"):
        return f"ended before it was used: {_reason(pod) or phase}"
    for status in pod.each("status", "containerStatuses"):
        reason = status.text("state", "waiting", "reason")
        if reason in (*_NEVER, *_BROKEN):
            return f"cannot start: {_worded(reason, status.text('state', 'waiting', 'message'))}"
    for condition in pod.each("status", "conditions"):
        is_refused = condition.text("type") == "PodScheduled" and condition.text("reason") == "Unschedulable"
        if is_refused and condition.text("status") == "False" and waited > PATIENCE_S:
            return f"gets no node: {_worded(None, condition.text('message'))}"
    return None


def _reason(pod: Document) -> str | None:
    """Return what a pod itself says of its state."""
    if pod.text("status", "reason"):
        return _worded(pod.text("status", "reason"), pod.text("status", "message"))
    for status in pod.each("status", "containerStatuses"):
        for state in ("terminated", "waiting"):
            reason = status.text("state", state, "reason")
            if reason is not None:
                code = status.whole("state", state, "exitCode")
                exit_ = "" if code is None else f" (exit {code})"
                return _worded(f"{reason}{exit_}", status.text("state", state, "message"))
    return None


def _worded(reason: str | None, message: str | None) -> str:
    words = ": ".join(part for part in (reason, message) if part)
    return " ".join(redact.text(text.visible(words)).split())[:600]


def _failed(cluster: Cluster, pod: Document, what: str, *, hint: str) -> RemoteError:
    name = pod.text("metadata", "name")
    return RemoteError(f"pod {name} {what}{_told(cluster, pod)}", code="helper-failed", hint=hint)


def _told(cluster: Cluster, pod: Document) -> str:
    """Return the last events of a pod, as far as they may be read."""
    uid = pod.text("metadata", "uid")
    namespace = pod.text("metadata", "namespace")
    try:
        found: Sequence[Document] = cluster.list(EVENTS, namespace, fields=f"involvedObject.uid={uid}")
    except AjError:
        return ""  # they are an extra: without the right to see them the pod's own words must do
    last = sorted(found, key=lambda one: one.text("lastTimestamp") or one.text("eventTime") or "")[-3:]
    told = dict.fromkeys(_worded(one.text("reason"), one.text("message")) for one in last)
    return f" ({'; '.join(told)})" if told else ""


def _refused(name: str, error: Refused) -> Refused:
    words = error.message.partition(": ")[2] or error.message
    return Refused(f"pod {name} was refused: {words}", code=error.code, hint=_HINT, details=error.details)
