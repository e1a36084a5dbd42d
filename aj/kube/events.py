"""Events of a cluster: what happened to an object, oldest first, repetitions counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aj.base.noun import dataclass
from aj.kube.client import Cluster
from aj.kube.resources import EVENTS
from aj.kube.times import seconds
from aj.net.document import Document


@dataclass(frozen=True)
class Event:
    """One thing that happened `count` times. Times are seconds since the epoch."""

    kind: str
    name: str
    type: str
    reason: str
    message: str
    count: int = 1
    first_at: float | None = None
    last_at: float | None = None

    @property
    def is_warning(self) -> bool:
        return self.type == "Warning"


def of_object(
    cluster: Cluster, name: str, namespace: str | None = None, *, uid: str | None = None
) -> tuple[Event, ...]:
    """Read what happened to an object of this name, or to exactly this one. Raises as Cluster.list."""
    fields = f"involvedObject.name={name}" + (f",involvedObject.uid={uid}" if uid else "")
    return merged(of(one) for one in cluster.list(EVENTS, namespace, fields=fields))


def every(cluster: Cluster, namespace: str | None = None) -> tuple[Event, ...]:
    """Read everything that happened in a namespace and is still told. Raises as Cluster.list."""
    return merged(of(one) for one in cluster.list(EVENTS, namespace))


def merged(events: Iterable[Event]) -> tuple[Event, ...]:
    """Count equal events together, and put all in the order in which they last happened."""
    found: dict[tuple[str, str, str, str], Event] = {}
    for event in events:
        key = event.kind, event.name, event.reason, event.message
        found[key] = _both(found[key], event) if key in found else event
    return tuple(sorted(found.values(), key=lambda event: event.last_at or 0.0))


def _both(one: Event, other: Event) -> Event:
    first = [moment for moment in (one.first_at, other.first_at) if moment is not None]
    last = [moment for moment in (one.last_at, other.last_at) if moment is not None]
    return replace(
        one,
        count=one.count + other.count,
        first_at=min(first, default=None),
        last_at=max(last, default=None),
    )


def of(document: Document) -> Event:
    """Read an event as the cluster answers it. Raises RemoteError on what is none."""
    created = document.text("metadata", "creationTimestamp")
    exact = document.text("eventTime")
    first = document.text("firstTimestamp") or exact or created
    last = document.text("lastTimestamp") or document.text("series", "lastObservedTime") or exact or created
    return Event(
        kind=document.text("involvedObject", "kind") or "",
        name=document.text("involvedObject", "name") or "",
        type=document.text("type") or "Normal",
        reason=document.text("reason") or "",
        message=" ".join((document.text("message") or "").split()),
        count=document.whole("count") or document.whole("series", "count") or 1,
        first_at=seconds(first),
        last_at=seconds(last),
    )
