"""What keeps a gang from running: the gang itself, its queue, quotas, nodes, images, volumes, in this order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeVar

from aj.base import text, units
from aj.base.errors import NotFound, Refused
from aj.kube import amounts, events, pods, queues
from aj.kube.client import Cluster
from aj.kube.events import Event
from aj.kube.jobs import Job
from aj.kube.pods import IMAGE_TROUBLE, Pod
from aj.kube.queues import Queue
from aj.kube.resources import CLAIMS, POD_GROUPS, QUOTAS

SHOWN = 300  # characters of what a scheduler says of its nodes
T = TypeVar("T")
_QUOTA = re.compile(r"exceeded quota: .*")


def of(cluster: Cluster, job: Job) -> tuple[str, ...]:
    """Return the obstacles, the first one first; what this user may not look at is passed over.

    Raises what the pods could not be read for.
    """
    members = pods.of_job(cluster, job.name, job.namespace)
    told = _seen(lambda: events.every(cluster, job.namespace)) or ()
    group = _seen(lambda: _group(cluster, job))
    found: list[str] = [
        *_gang(job, members, group, cluster.clock.now()),
        *_queue(job, _seen(lambda: queues.find(cluster, job.queue))),
        *_quota(cluster, job, told),
        *_nodes(members),
        *_images(members),
        *_volumes(cluster, job, members, told),
    ]
    return tuple(dict.fromkeys(found))


def _seen(ask: Callable[[], T]) -> T | None:
    """Return what was asked for, None where this user may not look."""
    try:
        return ask()
    except (Refused, NotFound):
        return None


def _group(cluster: Cluster, job: Job) -> str | None:
    """Return what the scheduler says of the gang as a whole."""
    for name in (f"{job.name}-{job.uid}", job.name):  # the older releases named it as the job
        found = cluster.find(POD_GROUPS, name, job.namespace)
        if found is None:
            continue
        for condition in found.each("status", "conditions"):
            if condition.text("type") == "Unschedulable" and condition.text("status") == "True":
                return condition.text("message")
    return None


def _gang(job: Job, members: Sequence[Pod], group: str | None, now: float) -> list[str]:
    placed = [pod for pod in members if pod.node is not None]
    due = job.min_available or job.replicas
    if len(placed) >= due:
        return []
    age = f" after {units.duration(now - job.created_at)}" if job.created_at is not None else ""
    words = f"gang: {len(placed)} of {text.plural(due, 'pod')} have a node{age}, and none starts before all do"
    return [f"{words} ({_short(group)})" if group else words]


def _queue(job: Job, queue: Queue | None) -> list[str]:
    if queue is None:
        return []
    found = [] if queue.takes_jobs else [f"queue: {queue.name} is {queue.state}"]
    for name, wanted in sorted(job.wants.items()):
        limit = queue.capability.get(name)
        if limit is None:
            continue
        used = queue.allocated.get(name, Decimal(0))
        if used + wanted > limit:
            parts = [amounts.shown(name, amount) for amount in (used, limit, wanted)]
            found.append(f"queue: {name} of {queue.name}: {parts[0]} of {parts[1]} in use, the job wants {parts[2]}")
    if queue.pending and not found:
        found.append(f"queue: {text.plural(queue.pending, 'gang')} wait in {queue.name}")
    return found


def _quota(cluster: Cluster, job: Job, told: Sequence[Event]) -> list[str]:
    """Return what the namespace's quotas refuse: their numbers, else the words of the refusal."""
    found = []
    for quota in _seen(lambda: cluster.list(QUOTAS, job.namespace)) or ():
        hard, used = amounts.of(quota, "status", "hard"), amounts.of(quota, "status", "used")
        for key in sorted(hard):
            name = key.removeprefix("requests.")
            parts = used.get(key, Decimal(0)), hard[key], job.wants.get(name, Decimal(0))
            if parts[2] and parts[0] + parts[2] > parts[1]:
                told_by = [amounts.shown(name, part) for part in parts]
                about = f"quota: {key} of {quota.text('metadata', 'name')}"
                found.append(f"{about}: {told_by[0]} of {told_by[1]} in use, the job wants {told_by[2]}")
    if found:
        return found
    refused = (_QUOTA.search(event.message) for event in told if event.name.startswith(job.name))
    return list(dict.fromkeys(f"quota: {_short(one[0])}" for one in refused if one))


def _nodes(members: Sequence[Pod]) -> list[str]:
    """Return what the scheduler says of the nodes, one line for each thing that it says."""
    said: dict[str, list[Pod]] = {}
    for pod in members:
        if pod.is_unschedulable and pod.message:
            said.setdefault(pod.message, []).append(pod)
    return [f"nodes: {_who(them)}: {_short(words)}" for words, them in said.items()]


def _images(members: Sequence[Pod]) -> list[str]:
    said: dict[tuple[str, str], list[Pod]] = {}
    for pod in members:
        if pod.waits_for in IMAGE_TROUBLE:
            said.setdefault((pod.waits_for or "", pod.message or ""), []).append(pod)
    return [f"image: {_who(them)}: {reason}: {_short(words)}" for (reason, words), them in said.items()]


def _volumes(cluster: Cluster, job: Job, members: Sequence[Pod], told: Sequence[Event]) -> list[str]:
    found = []
    for claim in dict.fromkeys(claim for task in job.tasks for claim in task.claims):
        there = _claim(cluster, job, claim)
        if there not in ("Bound", None):
            found.append(f"volume: claim {claim} is {there}")
    names = {pod.name for pod in members}
    trouble = [event for event in told if event.name in names and event.reason in ("FailedMount", "FailedAttachVolume")]
    found += [f"volume: {event.name}: {_short(event.message)} ({event.count} times)" for event in trouble[-1:]]
    return found


def _claim(cluster: Cluster, job: Job, name: str) -> str | None:
    """Return the phase of a claim, `not there`, or None where this user may not look."""
    try:
        found = cluster.find(CLAIMS, name, job.namespace)
    except Refused:
        return None
    return "not there" if found is None else found.text("status", "phase")


def _who(them: Sequence[Pod]) -> str:
    """Name the first of several pods and count the others."""
    first = them[0].member
    return first if len(them) == 1 else f"{first} and {len(them) - 1} more"


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"
