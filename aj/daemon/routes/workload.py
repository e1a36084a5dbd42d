"""Routes that the replicas of a deployment ask, each with its token: work, claims, cancellation, outcomes.

None of them needs a key: an execution has an id of its own, and the same request again is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from aj.base.errors import AuthError, UserError
from aj.daemon.call import Answer, Call, Handler, reply
from aj.model.claim import Bearer, Candidate
from aj.wire import paths
from aj.wire.deployment import Cancellation, Claiming, Found, Put, Said
from aj.wire.paths import Route


def candidate(call: Call) -> Answer:
    """Find a job that may be claimed, waiting for one."""

    def look(timeout_s: float) -> Candidate | None:
        return call.engine.deployments.candidate(_who(call), timeout_s)

    return reply(Found(call.line.poll(look, lambda found: found is not None, call.seconds("timeout_s"))))


def claim(call: Call) -> Answer:
    """Start a queued job for this replica."""
    asked, who = call.decode(Claiming), _who(call)
    at = asked.submission_revision, asked.previous_execution_id
    return reply(call.engine.deployments.claim(who, call.segments[1], asked.execution_id, *at))


def cancellation(call: Call) -> Answer:
    """Wait until the job of an execution is terminated."""
    execution = call.query.get("execution", "")

    def look(timeout_s: float) -> bool:
        return call.engine.deployments.cancellation(_who(call), call.segments[1], execution, timeout_s)

    return reply(Cancellation(call.line.poll(look, bool, call.seconds("timeout_s"))))


def outcome(call: Call) -> Answer:
    """End an execution."""
    asked, who = call.decode(Said), _who(call)
    said = asked.outcome, asked.message
    return reply(call.engine.deployments.outcome(who, call.segments[1], asked.execution_id, *said))


def cleanup(call: Call) -> Answer:
    """Free the slot of a terminated job."""
    return reply(call.engine.deployments.cleanup(_who(call), call.segments[1], call.decode(Put).execution_id))


def _who(call: Call) -> Bearer:
    """Return which replica asks. Raises AuthError without a good token, UserError when it is another deployment's."""
    scheme, _, token = call.headers.get(paths.AUTHORIZATION, "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise AuthError("a replica's token is due", code="no-token")
    who = call.engine.deployments.bearer(token)
    if who.deployment != call.name:
        raise UserError(f"the token is one of deployment `{who.deployment}`", code="bad-token")
    return who


HANDLERS: Mapping[Route, Handler] = {
    paths.WORK_CANDIDATE: candidate,
    paths.WORK_CLAIM: claim,
    paths.WORK_CANCELLATION: cancellation,
    paths.WORK_OUTCOME: outcome,
    paths.WORK_CLEANUP: cleanup,
}
