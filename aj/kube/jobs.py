"""Jobs of Volcano: gangs of pods, each found by its name or by the id that `aj` gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal

from aj.base.clock import rfc3339
from aj.base.noun import dataclass
from aj.kube import amounts, secrets
from aj.kube.amounts import Amounts
from aj.kube.client import Cluster
from aj.kube.resources import JOBS
from aj.kube.times import seconds
from aj.model.json import Json
from aj.net.document import Document

ID, MANAGED_BY = "aj-id", "app.kubernetes.io/managed-by"  # labels
CANCELLED = "aj-cancelled"  # the annotation of a job that its user ended
NAME, TEMPLATE = "aj-name", "aj-template"  # annotations


@dataclass(frozen=True)
class Task:
    """One role of a gang. `wants` is what each of its pods asks for."""

    name: str
    replicas: int
    image: str | None = None
    gpus: int = 0
    wants: Amounts = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One job as its cluster tells it. Times are seconds since the epoch; `phase` is Volcano's own word."""

    name: str
    namespace: str
    uid: str
    phase: str
    queue: str
    tasks: tuple[Task, ...]
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    retries: int = 0
    reason: str | None = None
    message: str | None = None
    created_at: float | None = None
    changed_at: float | None = None
    started_at: float | None = None
    aj_id: str | None = None
    title: str | None = None
    template: str | None = None
    cancelled_at: str | None = None
    is_leaving: bool = False

    @property
    def is_cancelled(self) -> bool:
        """Whether its user ended it."""
        return self.cancelled_at is not None

    @property
    def replicas(self) -> int:
        """How many pods it has when it is whole."""
        return sum(task.replicas for task in self.tasks)

    @property
    def wants(self) -> dict[str, Decimal]:
        """What all of its pods ask for together."""
        each = [{name: amount * task.replicas for name, amount in task.wants.items()} for task in self.tasks]
        return amounts.total(each)


def get(cluster: Cluster, name: str, namespace: str | None = None) -> Job:
    """Read one job. Raises NotFound and as Cluster.get."""
    return of(cluster.get(JOBS, name, namespace))


def find(cluster: Cluster, name: str, namespace: str | None = None) -> Job | None:
    """Read one job; None when there is none. Raises as Cluster.find."""
    found = cluster.find(JOBS, name, namespace)
    return None if found is None else of(found)


def every(cluster: Cluster, namespace: str | None = None, *, ours: bool = False) -> tuple[Job, ...]:
    """Read all jobs of a namespace, or those of `aj` alone, newest first. Raises as Cluster.list."""
    found = cluster.list(JOBS, namespace, labels={MANAGED_BY: "aj"} if ours else None)
    return tuple(sorted(map(of, found), key=lambda job: job.created_at or 0.0, reverse=True))


def by_id(cluster: Cluster, aj_id: str, namespace: str | None = None) -> tuple[Job, ...]:
    """Read the jobs that bear an AJ ID. Raises as Cluster.list."""
    return tuple(map(of, cluster.list(JOBS, namespace, labels={ID: aj_id})))


def create(cluster: Cluster, body: Mapping[str, Json], namespace: str | None = None) -> Job:
    """Create a job, once. Raises as Cluster.create."""
    return of(cluster.create(JOBS, body, namespace))


def mark_cancelled(cluster: Cluster, job: Job) -> None:
    """Write into a job that its user ends it. Raises as Cluster.patch."""
    moment = rfc3339(cluster.clock.now())
    cluster.patch(JOBS, job.name, {"metadata": {"annotations": {CANCELLED: moment}, "uid": job.uid}}, job.namespace)


def delete(cluster: Cluster, job: Job) -> bool:
    """Delete exactly this job, its pods after it; False when it is gone. Raises as Cluster.delete."""
    return cluster.delete(JOBS, job.name, job.namespace, uid=job.uid)


def own_secret(cluster: Cluster, job: Job, secret: str) -> None:
    """Let a Secret die with a job. Raises as secrets.own."""
    about: dict[str, Json] = {"metadata": {"name": job.name, "uid": job.uid}}
    secrets.own(cluster, secret, job.namespace, Document(about, f"job {job.name}"))


def of(document: Document) -> Job:
    """Read a job as the cluster answers it. Raises RemoteError on what is none."""
    state = document.inner("status", "state")
    labels, notes = document.texts("metadata", "labels"), document.texts("metadata", "annotations")
    return Job(
        name=document.need_text("metadata", "name"),
        namespace=document.need_text("metadata", "namespace"),
        uid=document.need_text("metadata", "uid"),
        phase=state.text("phase") or "Pending",  # a moment after its creation nobody has looked at it yet
        queue=document.text("spec", "queue") or "default",
        tasks=tuple(_task(task) for task in document.each("spec", "tasks")),
        min_available=document.whole("spec", "minAvailable") or 0,
        pending=document.whole("status", "pending") or 0,
        running=document.whole("status", "running") or 0,
        succeeded=document.whole("status", "succeeded") or 0,
        failed=document.whole("status", "failed") or 0,
        retries=document.whole("status", "retryCount") or 0,
        reason=state.text("reason") or None,
        message=state.text("message") or None,
        created_at=seconds(document.text("metadata", "creationTimestamp")),
        changed_at=seconds(state.text("lastTransitionTime")),
        started_at=_started(document),
        aj_id=labels.get(ID),
        title=notes.get(NAME),
        template=notes.get(TEMPLATE),
        cancelled_at=notes.get(CANCELLED),
        is_leaving=document.text("metadata", "deletionTimestamp") is not None,
    )


def _started(document: Document) -> float | None:
    """Return when all were running for the first time, as its conditions tell."""
    moments = [
        seconds(one.text("lastTransitionTime"))
        for one in document.each("status", "conditions")
        if one.text("status") == "Running"
    ]
    return min((moment for moment in moments if moment is not None), default=None)


def _task(document: Document) -> Task:
    spec = document.inner("template", "spec")
    containers = spec.each("containers")
    wants = amounts.total(_wants(container) for container in containers)
    gpus = sum((amount for name, amount in wants.items() if name.endswith("/gpu")), Decimal(0))
    claims = (volume.text("persistentVolumeClaim", "claimName") for volume in spec.each("volumes"))
    replicas = document.whole("replicas")
    return Task(
        name=document.text("name") or "default",
        replicas=1 if replicas is None else replicas,
        image=containers[0].text("image") if containers else None,
        gpus=int(gpus),
        wants=wants,
        node_selector=spec.texts("nodeSelector"),
        claims=tuple(claim for claim in claims if claim),
    )


def _wants(container: Document) -> dict[str, Decimal]:
    """Return what a container asks for: a limit counts where no request stands."""
    return {**amounts.of(container, "resources", "limits"), **amounts.of(container, "resources", "requests")}
