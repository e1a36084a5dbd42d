"""Routes of clusters looked at by hand."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base.errors import UserError
from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.kube import Where
from aj.wire.paths import Route


def status(call: Call) -> Answer:
    """Say where one is, and what the cluster says of that."""
    with call.line.alive():
        return reply(call.engine.k8s.status(_where(call), check=call.flag("check")))


def jobs(call: Call) -> Answer:
    """List jobs of Volcano."""
    with call.line.alive():
        return reply(call.engine.k8s.jobs(_where(call), call.query.get("job")))


def queues(call: Call) -> Answer:
    """List queues."""
    with call.line.alive():
        return reply(call.engine.k8s.queues(_where(call)))


def pods(call: Call) -> Answer:
    """List pods."""
    with call.line.alive():
        return reply(call.engine.k8s.pods(_where(call), call.query.get("job")))


def events(call: Call) -> Answer:
    """List what happened to a job or a pod."""
    with call.line.alive():
        return reply(call.engine.k8s.events(_where(call), _name(call)))


def logs(call: Call) -> Answer:
    """Read the next page of what a pod printed."""
    with call.line.alive():
        return reply(
            call.engine.k8s.log(
                _where(call),
                _name(call),
                rank=call.whole("rank", 0) if "rank" in call.query else None,
                container=call.query.get("container"),
                previous=call.flag("previous"),
                tail=call.whole("tail", 0) if "tail" in call.query else None,
                cursor=call.query.get("cursor"),
            )
        )


def delete(call: Call) -> Answer:
    """Delete a job with what is its."""
    (name,) = call.segments
    return reply(call.engine.k8s.delete(_where(call), name))


def refresh(call: Call) -> Answer:
    """Renew the signatures of a job."""
    (name,) = call.segments
    hours = call.query.get("hours")
    return reply(call.engine.k8s.refresh(_where(call), name, None if hours is None else call.seconds("hours")))


def _where(call: Call) -> Where:
    return Where(*(call.query.get(word) or None for word in ("context", "namespace", "kubeconfig")))


def _name(call: Call) -> str:
    name = call.query.get("name")
    if not name:
        raise UserError("query.name is missing", code="bad-field")
    return name


HANDLERS: Mapping[Route, Handler] = {
    paths.K8S_STATUS: status,
    paths.K8S_JOBS: jobs,
    paths.K8S_QUEUES: queues,
    paths.K8S_PODS: pods,
    paths.K8S_EVENTS: events,
    paths.K8S_LOGS: logs,
    paths.K8S_DELETE: delete,
    paths.K8S_REFRESH: refresh,
}
