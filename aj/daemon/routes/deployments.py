"""Routes of deployments: made, shown, changed, removed; jobs that are sent to them, and their first claim."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.model.claim import ClaimState
from aj.wire import paths
from aj.wire.deployment import ClaimAnswer, Create, Delete, Targeting, Upgrade
from aj.wire.paths import Route


def listing(call: Call) -> Answer:
    """List all deployments."""
    return reply(call.engine.deployments.list())


def show(call: Call) -> Answer:
    """Show one deployment with its replicas and the jobs that they hold."""
    return reply(call.engine.deployments.show(call.name))


def create(call: Call) -> Answer:
    """Make a deployment."""
    return reply(call.engine.deployments.create(call.decode(Create)))


def upgrade(call: Call) -> Answer:
    """Change a deployment."""
    return reply(call.engine.deployments.upgrade(call.name, call.decode(Upgrade)))


def delete(call: Call) -> Answer:
    """Let a deployment end."""
    return reply(call.engine.deployments.delete(call.name, call.decode(Delete).force))


def submit(call: Call) -> Answer:
    """Send a job to a deployment."""
    return reply(call.engine.deployments.submit(call.name, call.project, call.decode(Targeting)))


def observe(call: Call) -> Answer:
    """Wait for what becomes of the first claim of a submission."""
    revision = call.whole("revision", 0)

    def look(timeout_s: float) -> ClaimAnswer:
        return call.engine.deployments.observe(call.name, revision, timeout_s)

    def is_known(answer: ClaimAnswer) -> bool:
        return answer.outcome is not ClaimState.PENDING

    return reply(call.line.poll(look, is_known, call.seconds("timeout_s")))


HANDLERS: Mapping[Route, Handler] = {
    paths.DEPLOYMENTS: listing,
    paths.DEPLOYMENT: show,
    paths.DEPLOYMENT_CREATE: create,
    paths.DEPLOYMENT_UPGRADE: upgrade,
    paths.DEPLOYMENT_DELETE: delete,
    paths.DEPLOYMENT_SUBMIT: submit,
    paths.JOB_CLAIM: observe,
}
