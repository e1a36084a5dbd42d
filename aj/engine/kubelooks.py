"""Clusters looked at by hand: where one is, gangs, queues, pods, events and logs, and a job removed with what is its.

A job is named by its own name or by its AJ ID. Names are checked before they become part of an address or of a
selector.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

from aj.base.clock import rfc3339
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.engine.kube import Clusters
from aj.engine.kubejobs import decoded, encoded, kubectl, reason
from aj.kube import endings, events, jobs, podlogs, pods, queues, secrets
from aj.kube.client import Cluster
from aj.kube.events import Event
from aj.kube.jobs import Job
from aj.kube.podlogs import Cursor
from aj.kube.pods import Pod
from aj.kube.queues import Queue
from aj.kube.resources import RIGHTS
from aj.wire.kube import (
    ClusterStatus,
    EventList,
    EventRow,
    GangList,
    GangRow,
    JobRemoved,
    PodList,
    PodLog,
    PodRow,
    QueueRow,
    QueueRows,
    Refreshed,
    Right,
    Where,
)

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\Z")
OVER = frozenset({"Succeeded", "Failed"})
Tidy = Callable[[Cluster, Job], tuple[str, ...]]
Renew = Callable[[Cluster, Job, float | None], Refreshed]


@dataclass(frozen=True)
class KubeLooks:
    """What can be asked about clusters.

    `tidy` removes what a job left on its volume, and says what it could not; `renew` signs anew what a job reads and
    writes in storage.
    """

    clusters: Clusters
    tidy: Tidy
    renew: Renew

    def status(self, where: Where, *, check: bool) -> ClusterStatus:
        """Say where one is; with `check` what the cluster says of itself and of this user. Raises ConfigError."""
        cluster = self._open(where)
        access = cluster.access
        known = (access.context, access.server, cluster.namespace, access.namespace_from, access.user.name)
        if not check:
            return ClusterStatus(*known)
        try:
            version = cluster.path("/version", "ask for the version").text("gitVersion")
            has_volcano = _has_volcano(cluster)
        except AjError as error:
            return ClusterStatus(*known, problem=error.message)
        rights = tuple(
            Right(verb, resource, cluster.may(verb, resource)) for resource, verbs in RIGHTS for verb in verbs
        )
        return ClusterStatus(*known, version, has_volcano, rights)

    def jobs(self, where: Where, word: str | None) -> GangList:
        """List the jobs of a namespace, or the one that is named. Raises NotFound, Refused, Unavailable."""
        cluster = self._open(where)
        found = jobs.every(cluster) if word is None else (self._job(cluster, word),)
        rows = tuple(_gang(cluster, job, told=word is not None) for job in found)
        name = found[0].name if word is not None else None
        return GangList(cluster.namespace, rows, kubectl(cluster, "get", name, file=where.kubeconfig))

    def queues(self, where: Where) -> QueueRows:
        """List the queues of a cluster. Raises Refused, Unavailable, NotFound without Volcano."""
        return QueueRows(tuple(map(_queue, queues.every(self._open(where)))))

    def pods(self, where: Where, word: str | None) -> PodList:
        """List the pods of a namespace, or those of a job. Raises NotFound, Refused, Unavailable."""
        cluster = self._open(where)
        if word is None:
            found = pods.every(cluster)
        else:
            found = pods.of_job(cluster, self._job(cluster, word).name)
        return PodList(cluster.namespace, tuple(map(_pod, found)))

    def events(self, where: Where, word: str) -> EventList:
        """List what happened to a pod, or to a job and its pods. Raises NotFound, Refused, Unavailable."""
        cluster = self._open(where)
        job = self._find_job(cluster, word)
        wanted = {word} if job is None else {job.name, *(pod.name for pod in pods.of_job(cluster, job.name))}
        found = [event for event in events.every(cluster) if event.name in wanted]
        if job is None and not found and not any(pod.name == word for pod in pods.every(cluster)):
            raise _nothing(word, cluster)
        return EventList(cluster.namespace, tuple(map(_event, found)))

    def log(
        self,
        where: Where,
        word: str,
        *,
        rank: int | None,
        container: str | None,
        previous: bool,
        tail: int | None,
        cursor: str | None,
    ) -> PodLog:
        """Read what a pod printed since the last look; of a job that of one rank. Raises NotFound, UserError."""
        cluster = self._open(where)
        pod = self._member(cluster, word, rank)
        if previous or container is not None:
            data = pods.log(cluster, pod.name, pod.namespace, container=container, tail=tail, previous=previous)
            return PodLog(pod.name, data, encoded(Cursor(pod.uid)), is_over=True)
        start = Cursor() if cursor is None else decoded(cursor)
        page = podlogs.read(cluster, pod, start, tail=tail)
        return PodLog(pod.name, page.data, encoded(page.cursor), is_over=pod.phase in OVER and not page.data)

    def delete(self, where: Where, word: str) -> JobRemoved:
        """Delete a job, the Secret that `aj` made for it, and its code. Raises NotFound, Refused, OutcomeUnknown."""
        cluster = self._open(where)
        job = self._job(cluster, word)
        notes = list(self._tidied(cluster, job))  # while the job still tells where its volume is
        ended = endings.delete(cluster, job.name)
        secret = self._without_secret(cluster, job, notes)
        return JobRemoved(ended.job.name if ended.job else None, job.namespace, secret, tuple(notes))

    def refresh(self, where: Where, word: str, hours: float | None) -> Refreshed:
        """Renew the signatures of a job, for so many hours or as before. Raises NotFound, UserError, Refused."""
        cluster = self._open(where)
        return self.renew(cluster, self._job(cluster, word), hours)

    def _tidied(self, cluster: Cluster, job: Job) -> tuple[str, ...]:
        try:
            return self.tidy(cluster, job)
        except AjError as error:  # the job goes all the same, and what is left is told
            return (f"its code stays on the volume: {error.message}",)

    def _without_secret(self, cluster: Cluster, job: Job, notes: list[str]) -> str | None:
        name = f"aj-{job.aj_id}" if job.aj_id else None
        if name is None:
            return None
        try:
            there = secrets.find(cluster, name, job.namespace)
            if there is None:
                return None  # its owner took it along
            if there.labels.get(jobs.ID) != job.aj_id:
                raise Refused("it is not ours", code="other-secret")
            return name if secrets.remove(cluster, name, job.namespace, uid=there.uid) else None
        except AjError as error:
            notes.append(f"Secret {name} stays: {error.message}")
            return None

    # Where and which

    def _open(self, where: Where) -> Cluster:
        if where.namespace is not None:
            _checked(where.namespace)
        return self.clusters.open(where.context, where.namespace, Path(where.kubeconfig) if where.kubeconfig else None)

    def _find_job(self, cluster: Cluster, word: str) -> Job | None:
        """Find a job by its name or its AJ ID. Raises UserError when several bear the id."""
        _checked(word)
        named = jobs.find(cluster, word)
        if named is not None:
            return named
        found = jobs.by_id(cluster, word) if len(word) <= 63 and "." not in word else ()
        if len(found) > 1:
            names = ", ".join(job.name for job in found)
            raise UserError(f"{len(found)} jobs bear the id {word}: {names}", code="ambiguous", hint="use a name")
        return found[0] if found else None

    def _job(self, cluster: Cluster, word: str) -> Job:
        found = self._find_job(cluster, word)
        if found is None:
            raise _nothing(word, cluster)
        return found

    def _member(self, cluster: Cluster, word: str, rank: int | None) -> Pod:
        """Find a pod by its name, or by its rank in a job, 0 by default. Raises NotFound."""
        job = self._find_job(cluster, word)
        if job is None:
            found = [pod for pod in pods.every(cluster) if pod.name == word]
            if not found:
                raise _nothing(word, cluster)
            return found[0]
        members = pods.of_job(cluster, job.name)
        wanted = next((pod for pod in members if pod.rank == (rank or 0)), None)
        if wanted is None and rank is None and members:
            return members[0]
        if wanted is None:
            have = f"it has {len(members)}" if members else "it has none yet"
            raise NotFound(f"job {job.name} has no pod of rank {rank or 0}: {have}", hint=f"`aj k8s pods --job {word}`")
        return wanted


def _checked(word: str) -> str:
    """Let only a DNS name pass: it becomes part of an address or of a selector. Raises UserError."""
    if not _NAME.match(word):
        raise UserError(f"`{word}` is no name of an object: small letters, digits, `-` and `.`", code="bad-name")
    return word


def _nothing(word: str, cluster: Cluster) -> NotFound:
    where = f"namespace {cluster.namespace} of {cluster.access.context}"
    return NotFound(f"no job and no pod {word} in {where}", hint="`aj k8s jobs`, `aj k8s pods`")


def _has_volcano(cluster: Cluster) -> bool:
    try:
        jobs.every(cluster)
    except Refused:
        return True  # what may not be looked at is there
    except NotFound:
        return False
    return True


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)


def _gang(cluster: Cluster, job: Job, *, told: bool) -> GangRow:
    why = job.message or job.reason
    if told and job.failed:
        why = reason(cluster, job) or why
    return GangRow(
        job.name,
        job.aj_id,
        job.phase,
        job.queue,
        job.min_available,
        job.pending,
        job.running,
        job.succeeded,
        job.failed,
        _moment(job.created_at),
        why,
    )


def _queue(queue: Queue) -> QueueRow:
    return QueueRow(
        queue.name,
        queue.state,
        queue.weight,
        queue.parent,
        _written(queue.capability),
        _written(queue.allocated),
        queue.pending,
        queue.running,
    )


def _written(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: format(amount.normalize(), "f") for name, amount in sorted(amounts.items())}


def _pod(pod: Pod) -> PodRow:
    why = pod.how_it_ended if pod.has_failed else pod.message or pod.waits_for
    return PodRow(
        pod.name,
        pod.job,
        pod.task,
        pod.index,
        pod.rank,
        pod.node,
        "Leaving" if pod.is_leaving else pod.phase,
        pod.restarts,
        pod.exit_code,
        _moment(pod.created_at),
        why,
    )


def _event(event: Event) -> EventRow:
    what = f"{event.kind.lower()}/{event.name}"
    return EventRow(_moment(event.last_at), event.type, event.reason, what, event.message, event.count)
