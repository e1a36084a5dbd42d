"""What crosses the socket about clusters: where one is, gangs, queues, pods, events, and what was done to a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.base.noun import dataclass


@dataclass(frozen=True)
class Where:
    """A namespace of a cluster: None is the kubeconfig's own choice. `kubeconfig` is an absolute path."""

    context: str | None = None
    namespace: str | None = None
    kubeconfig: str | None = None


@dataclass(frozen=True)
class Right:
    """One thing that jobs need to be allowed: whether this user is."""

    verb: str
    resource: str
    allowed: bool


@dataclass(frozen=True)
class ClusterStatus:
    """Where one is. What only the cluster can tell is None unless it was asked; `problem` is why it did not tell."""

    context: str
    server: str
    namespace: str
    namespace_from: str
    user: str
    version: str | None = None
    has_volcano: bool | None = None
    rights: tuple[Right, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class GangRow:
    """A job of Volcano. Counts are of pods; times are RFC 3339 UTC."""

    name: str
    aj_id: str | None
    phase: str
    queue: str
    min_available: int
    pending: int
    running: int
    succeeded: int
    failed: int
    created_at: str | None
    reason: str | None = None


@dataclass(frozen=True)
class GangList:
    """Jobs, the newest first. `by_hand` is the line that asks the same without us."""

    namespace: str
    rows: tuple[GangRow, ...]
    by_hand: str = ""


@dataclass(frozen=True)
class QueueRow:
    """A queue. Amounts are written as the cluster writes them; counts are of gangs."""

    name: str
    state: str
    weight: int | None
    parent: str | None
    capability: Mapping[str, str] = field(default_factory=dict)
    allocated: Mapping[str, str] = field(default_factory=dict)
    pending: int = 0
    running: int = 0


@dataclass(frozen=True)
class QueueRows:
    """Queues by name."""

    rows: tuple[QueueRow, ...]


@dataclass(frozen=True)
class PodRow:
    """A pod. `rank` is that of its node in the gang."""

    name: str
    job: str | None
    task: str | None
    index: int | None
    rank: int | None
    node: str | None
    phase: str
    restarts: int
    exit_code: int | None
    created_at: str | None
    reason: str | None = None


@dataclass(frozen=True)
class PodList:
    """Pods in the order of their gangs and ranks."""

    namespace: str
    rows: tuple[PodRow, ...]


@dataclass(frozen=True)
class EventRow:
    """Something that happened `count` times, the last time at `last_at`."""

    last_at: str | None
    type: str
    reason: str
    object: str
    message: str
    count: int


@dataclass(frozen=True)
class EventList:
    """Events, the oldest first."""

    namespace: str
    rows: tuple[EventRow, ...]


@dataclass(frozen=True)
class PodLog:
    """The next bytes that a pod printed, and where to go on; `is_over` once nothing more will come."""

    pod: str
    data: bytes
    cursor: str
    is_over: bool


@dataclass(frozen=True)
class Signature:
    """One signature that was renewed: the key of the Secret, and until when the old and the new one are good."""

    key: str
    old_end: str | None
    new_end: str | None


@dataclass(frozen=True)
class Refreshed:
    """What was signed anew for a job."""

    job: str
    namespace: str
    secret: str
    signatures: tuple[Signature, ...]


@dataclass(frozen=True)
class JobRemoved:
    """What was removed with a job: `job` is its name, None when it was gone. `notes` say what stays, and why."""

    job: str | None
    namespace: str
    secret: str | None = None
    notes: tuple[str, ...] = ()
