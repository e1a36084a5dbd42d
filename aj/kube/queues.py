"""Queues of Volcano: who may put jobs in, what a queue may take, and what it has taken."""

from __future__ import annotations

from dataclasses import field

from aj.base.errors import NotFound, Refused
from aj.base.noun import dataclass
from aj.kube import amounts
from aj.kube.amounts import Amounts
from aj.kube.client import Cluster
from aj.kube.resources import QUEUES
from aj.net.document import Document

ROOT = "root"  # the parent of all: it takes no job itself
OPEN = "Open"
HINT = "`aj k8s queues` shows them"


@dataclass(frozen=True)
class Queue:
    """One queue. Counts are of gangs; an empty `capability` is no limit."""

    name: str
    state: str = OPEN
    weight: int | None = None
    parent: str | None = None
    capability: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    pending: int = 0
    running: int = 0
    inqueue: int = 0

    @property
    def takes_jobs(self) -> bool:
        return self.state == OPEN and self.name != ROOT


def every(cluster: Cluster) -> tuple[Queue, ...]:
    """Read all queues by name. Raises as Cluster.list."""
    return tuple(sorted(map(of, cluster.list(QUEUES)), key=lambda queue: queue.name))


def find(cluster: Cluster, name: str) -> Queue | None:
    """Read one queue; None when there is none. Raises as Cluster.find."""
    found = cluster.find(QUEUES, name)
    return None if found is None else of(found)


def check(cluster: Cluster, name: str) -> str | None:
    """Check that jobs can be put into a queue; return a warning where nobody may look.

    Raises Refused naming the open queues, NotFound when the cluster has no Volcano.
    """
    try:
        queue = find(cluster, name)
    except Refused as error:
        if error.code != "forbidden":
            raise
        return f"the queue {name} was not checked: {error.message}"
    if queue is not None and queue.takes_jobs:
        return None
    if queue is None:
        what = f"there is no queue {name}"
    elif name == ROOT:
        what = f"queue {ROOT} takes no jobs"
    else:
        what = f"queue {name} is {queue.state}"
    raise Refused(f"{what}{_open(cluster)}", code="no-queue", hint=HINT)


def _open(cluster: Cluster) -> str:
    """Name the open queues, as far as one may read them."""
    try:
        names = [queue.name for queue in every(cluster) if queue.takes_jobs]
    except (Refused, NotFound):
        return ""
    return f" (open: {', '.join(names) or 'none'})"


def of(document: Document) -> Queue:
    """Read a queue as the cluster answers it. Raises RemoteError on what is none."""
    return Queue(
        name=document.need_text("metadata", "name"),
        state=document.text("status", "state") or OPEN,  # a moment after its creation nobody has looked at it yet
        weight=document.whole("spec", "weight"),
        parent=document.text("spec", "parent"),
        capability=amounts.of(document, "spec", "capability"),
        deserved=amounts.of(document, "spec", "deserved"),
        allocated=amounts.of(document, "status", "allocated"),
        pending=document.whole("status", "pending") or 0,
        running=document.whole("status", "running") or 0,
        inqueue=document.whole("status", "inqueue") or 0,
    )
