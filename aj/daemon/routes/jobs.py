"""Routes of the jobs that the engine drives: list, show, wait, end, run again, run something inside."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base import paths as places
from aj.base.errors import UserError
from aj.daemon.call import Answer, Call, Handler, reply
from aj.model.state import JobState
from aj.wire import paths
from aj.wire.messages import Exec, Hold, JobAnswer, Preempt, Resubmit, Terminate
from aj.wire.paths import Route

LIMIT = 200  # jobs of a list when nobody says how many
NO_LIMIT = 1 << 40


def listing(call: Call) -> Answer:
    """List jobs of this project or of all, newest first; a limit of 0 means all of them."""
    key = call.project.key if call.project else places.NO_PROJECT
    states = call.words("state", JobState)
    limit = call.whole("limit", LIMIT) or NO_LIMIT
    return reply(call.engine.jobs.list(None if call.flag("all") else key, states, limit))


def show(call: Call) -> Answer:
    """Show one job with its events."""
    return reply(call.engine.jobs.show(call.name))


def wait(call: Call) -> Answer:
    """Wait for news of a job: an event after number `after`, its end, or the end of the time."""
    after = call.whole("after", 0)

    def look(timeout_s: float) -> JobAnswer:
        return call.engine.jobs.wait(call.name, after, timeout_s)

    def has_news(answer: JobAnswer) -> bool:
        return answer.events_total > after or answer.workload.is_over

    return reply(call.line.poll(look, has_news, call.seconds("timeout_s")))


def terminate(call: Call) -> Answer:
    """Ask a job to end."""
    return reply(call.engine.jobs.terminate(call.name, call.decode(Terminate).grace_s))


def resubmit(call: Call) -> Answer:
    """Run a final job again under its own id."""
    asked = call.decode(Resubmit)
    engine = call.engine.jobs
    return reply(engine.resubmit(call.name, asked.when_clean, asked.start_timeout_s, asked.refresh_image))


def preempt(call: Call) -> Answer:
    """Play the loss of a job's host."""
    return reply(call.engine.jobs.preempt(call.name, call.decode(Preempt).restartable))


def execute(call: Call) -> Answer:
    """Say how to run a command inside a running job."""
    asked = call.decode(Exec)
    if not asked.argv:
        raise UserError("body.argv: at least one word is due", code="bad-field")
    return reply(call.engine.jobs.exec_plan(call.name, asked))


def delete(call: Call) -> Answer:
    """Remove a final job with its logs and files."""
    return reply(call.engine.jobs.delete(call.name))


def hold(call: Call) -> Answer:
    """Start no job for a while; say how busy it still is."""
    asked = call.decode(Hold)
    call.engine.jobs.hold(asked.lease_s, asked.stop)
    return reply(call.engine.busy())


HANDLERS: Mapping[Route, Handler] = {
    paths.JOBS: listing,
    paths.JOBS_HOLD: hold,
    paths.JOB: show,
    paths.JOB_EVENTS: show,
    paths.JOB_WAIT: wait,
    paths.JOB_CANCEL: terminate,
    paths.JOB_TERMINATE: terminate,
    paths.JOB_RESUBMIT: resubmit,
    paths.JOB_EXEC: execute,
    paths.JOB_PREEMPT: preempt,
    paths.JOB_DELETE: delete,
}
