"""Pods: where each member of a gang stands, why it does not run or no longer does, and what it printed.

A member is known by what Volcano wrote into it, its Task and its place in that. Its name is never taken apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from aj.base.noun import dataclass
from aj.kube.client import Cluster
from aj.kube.jobs import ID
from aj.kube.resources import PODS
from aj.kube.times import seconds
from aj.net.document import Document

JOB_NAME = "volcano.sh/job-name"  # a label
TASK, INDEX = ("volcano.sh/task-spec", "volcano.sh/task-index")  # labels or annotations, by release
INDEXES = ("VC_TASK_INDEX", "VK_TASK_INDEX")  # variables, which older releases give alone
MAIN = "main"  # the container that runs the user's words
RANK_BASE = "AJ_RANK_BASE"
# What a container waits for when its image is the trouble.
IMAGE_TROUBLE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)


@dataclass(frozen=True)
class Pod:
    """One pod. Times are seconds since the epoch; `phase` is the cluster's own word.

    `rank` is that of its node in the gang. `reason` and `message` say why it waits, or why it ended.
    """

    name: str
    namespace: str
    uid: str
    phase: str
    aj_id: str | None = None
    job: str | None = None
    task: str | None = None
    index: int | None = None
    rank: int | None = None
    node: str | None = None
    restarts: int = 0
    created_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    waits_for: str | None = None
    is_unschedulable: bool = False
    is_leaving: bool = False

    @property
    def member(self) -> str:
        """What it is in its gang: `worker-3`; its name where it is in none."""
        return self.name if self.task is None or self.index is None else f"{self.task}-{self.index}"

    @property
    def has_failed(self) -> bool:
        return self.phase == "Failed" or bool(self.exit_code)

    @property
    def how_it_ended(self) -> str:
        """Its exit code and the container's reason, such as `exit 137 (OOMKilled)`."""
        why = self.reason if self.reason not in (None, "Error", "Completed") else None
        if self.exit_code is None:
            return why or self.message or self.phase
        return f"exit {self.exit_code}" + (f" ({why})" if why else "")


def of_job(cluster: Cluster, job: str, namespace: str | None = None) -> tuple[Pod, ...]:
    """Read the pods of a job, by rank. Raises as Cluster.list."""
    return ordered(map(of, cluster.list(PODS, namespace, labels={JOB_NAME: job})))


def every(cluster: Cluster, namespace: str | None = None, *, aj_id: str | None = None) -> tuple[Pod, ...]:
    """Read the pods of a namespace, or those that bear an AJ ID. Raises as Cluster.list."""
    return ordered(map(of, cluster.list(PODS, namespace, labels={ID: aj_id} if aj_id else None)))


def ordered(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Put pods in the order of their gangs and ranks, those of none at the end."""

    def place(pod: Pod) -> tuple[str, float, str]:
        return pod.job or "\x7f", float("inf") if pod.rank is None else pod.rank, pod.name

    return tuple(sorted(pods, key=place))


def first_failed(pods: Iterable[Pod]) -> Pod | None:
    """Return the pod that failed first, which is why the others had to end; None when none did."""
    failed = [pod for pod in pods if pod.has_failed]
    return min(failed, key=lambda pod: (pod.ended_at or float("inf"), pod.rank or 0), default=None)


def of(document: Document) -> Pod:
    """Read a pod as the cluster answers it. Raises RemoteError on what is none."""
    labels = {**document.texts("metadata", "annotations"), **document.texts("metadata", "labels")}
    name = document.need_text("metadata", "name")
    state = _main(document).inner("state")
    ended, waiting = state.inner("terminated"), state.inner("waiting")
    unready = _unscheduled(document)
    env = _env(document)
    index = _number(labels.get(INDEX), *map(env.get, INDEXES))
    base = _number(env.get(RANK_BASE))
    is_member = JOB_NAME in labels
    return Pod(
        name=name,
        namespace=document.need_text("metadata", "namespace"),
        uid=document.need_text("metadata", "uid"),
        phase=document.text("status", "phase") or "Pending",
        aj_id=labels.get(ID),
        job=labels.get(JOB_NAME),
        task=labels.get(TASK) if is_member else None,
        index=index if is_member else None,
        rank=base + index if is_member and base is not None and index is not None else None,
        node=document.text("spec", "nodeName"),
        restarts=_main(document).whole("restartCount") or 0,
        created_at=seconds(document.text("metadata", "creationTimestamp")),
        started_at=seconds(state.text("running", "startedAt") or ended.text("startedAt")),
        ended_at=seconds(ended.text("finishedAt")),
        exit_code=ended.whole("exitCode"),
        signal=ended.whole("signal"),
        reason=ended.text("reason") or document.text("status", "reason") or waiting.text("reason"),
        message=ended.text("message")
        or document.text("status", "message")
        or waiting.text("message")
        or (unready.text("message") if unready else None),
        waits_for=waiting.text("reason"),
        is_unschedulable=unready is not None,
        is_leaving=document.text("metadata", "deletionTimestamp") is not None,
    )


def log(
    cluster: Cluster,
    name: str,
    namespace: str | None = None,
    *,
    container: str | None = None,
    tail: int | None = None,
    since: str | None = None,
    previous: bool = False,
    timestamps: bool = False,
    limit_bytes: int | None = None,
) -> bytes:
    """Read what a container printed: its last lines, or from a moment on (RFC 3339). Raises as Cluster.text."""
    query = {
        "container": container,
        "tailLines": None if tail is None else str(tail),
        "sinceTime": since,
        "previous": "true" if previous else None,
        "timestamps": "true" if timestamps else None,
        "limitBytes": None if limit_bytes is None else str(limit_bytes),
    }
    return cluster.text(PODS, name, "log", {key: value for key, value in query.items() if value is not None}, namespace)


def _main(document: Document) -> Document:
    """Return the status of the container that matters; an empty one before there is any."""
    every = document.each("status", "containerStatuses")
    named = [one for one in every if one.text("name") == MAIN]
    return (named or list(every) or [Document({}, document.what)])[0]


def _unscheduled(document: Document) -> Document | None:
    """Return the condition that says that no node takes it, or None."""
    for condition in document.each("status", "conditions"):
        if condition.text("type") == "PodScheduled" and condition.text("status") == "False":
            return condition
    return None


def _number(*told: str | None) -> int | None:
    """Return the first of these that is a number."""
    return next((int(word) for word in told if word is not None and word.isdecimal()), None)


def _env(document: Document) -> dict[str, str]:
    """Return the variables of its containers that stand there as they are, the first one of a name."""
    found: dict[str, str] = {}
    for container in document.each("spec", "containers"):
        for variable in container.each("env"):
            value = variable.text("value")
            if value is not None:
                found.setdefault(variable.need_text("name"), value)
    return found
