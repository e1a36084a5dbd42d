"""Clusters looked at by hand: where one is, gangs, queues, pods, events, logs; a job removed with what is its."""

from __future__ import annotations

from collections.abc import Iterator

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import OutcomeUnknown
from aj.client.line import AnswerLost, Line, Query
from aj.client.queue import named
from aj.wire import paths
from aj.wire.kube import ClusterStatus, EventList, GangList, JobRemoved, PodList, PodLog, QueueRows, Refreshed, Where

LOOK_S, SLOWEST_S, SLOWER = 1.0, 10.0, 1.5  # between two looks at a log; when nothing has come for a while


class K8s:
    """What a caller can ask of clusters. Each raises ConfigError, AuthError, Refused and Unavailable."""

    def __init__(self, line: Line, clock: Clock = SYSTEM) -> None:
        self._line = line
        self._clock = clock

    def status(self, where: Where, *, check: bool = False) -> ClusterStatus:
        """Say where one is; with `check` the cluster is asked, too."""
        return self._line.read(ClusterStatus, paths.K8S_STATUS, query={**_at(where), "check": 1 if check else None})

    def jobs(self, where: Where, job: str | None = None) -> GangList:
        """List jobs of Volcano, or the one of that name or AJ ID. Raises NotFound."""
        return self._line.read(GangList, paths.K8S_JOBS, query={**_at(where), "job": job})

    def queues(self, where: Where) -> QueueRows:
        """List queues."""
        return self._line.read(QueueRows, paths.K8S_QUEUES, query=_at(where))

    def pods(self, where: Where, job: str | None = None) -> PodList:
        """List pods, or those of a job. Raises NotFound."""
        return self._line.read(PodList, paths.K8S_PODS, query={**_at(where), "job": job})

    def events(self, where: Where, name: str) -> EventList:
        """List what happened to a job and its pods, or to a pod. Raises NotFound."""
        return self._line.read(EventList, paths.K8S_EVENTS, query={**_at(where), "name": named(name, "name")})

    def log(
        self,
        where: Where,
        name: str,
        *,
        rank: int | None = None,
        container: str | None = None,
        previous: bool = False,
        tail: int | None = None,
        cursor: str | None = None,
    ) -> PodLog:
        """Return the next bytes that a pod printed: its last lines, or what came after a cursor. Raises NotFound."""
        query: Query = {
            **_at(where),
            "name": named(name, "name"),
            "rank": rank,
            "container": container,
            "previous": 1 if previous else None,
            "tail": tail if cursor is None else None,
            "cursor": cursor,
        }
        return self._line.read(PodLog, paths.K8S_LOGS, query=query)

    def follow(self, where: Where, name: str, *, rank: int | None = None, tail: int | None = None) -> Iterator[PodLog]:
        """Yield what a pod prints, each byte once, until it has ended. Raises NotFound."""
        page, pause_s = self.log(where, name, rank=rank, tail=tail), LOOK_S
        while True:
            if page.data:
                pause_s = LOOK_S
                yield page
            if page.is_over:
                return
            self._clock.sleep(pause_s)
            pause_s = min(SLOWEST_S, pause_s * SLOWER)
            page = self.log(where, name, rank=rank, cursor=page.cursor)

    def delete(self, where: Where, name: str) -> JobRemoved:
        """Delete a job, the Secret that `aj` made for it, and its code. Raises NotFound, OutcomeUnknown."""
        try:
            return self._line.change(JobRemoved, paths.K8S_DELETE, named(name, "job"), query=_at(where))
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer about {name} was lost: {lost}", hint=f"`aj k8s jobs {name}`") from lost

    def refresh(self, where: Where, name: str, hours: float | None = None) -> Refreshed:
        """Renew what was signed for a job. Raises NotFound, UserError, OutcomeUnknown."""
        query = {**_at(where), "hours": None if hours is None else f"{hours:g}"}
        try:
            return self._line.change(Refreshed, paths.K8S_REFRESH, named(name, "job"), query=query)
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer about {name} was lost: {lost}", hint="do it again") from lost


def _at(where: Where) -> Query:
    return {"context": where.context, "namespace": where.namespace, "kubeconfig": where.kubeconfig}
