"""Routes of submissions: promise one, and ask what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.messages import Submission, TicketAnswer
from aj.wire.paths import Route


def submit(call: Call) -> Answer:
    """Accept a submission: 202 once it is durable."""
    submission = call.decode(Submission)
    return reply(call.engine.submit(call.project, submission), 202)


def show(call: Call) -> Answer:
    """Tell what became of a submission, waiting for its end or its next step when asked to."""
    after = call.whole("after", 0) if "after" in call.query else None

    def look(wait_s: float) -> TicketAnswer:
        return call.engine.submission(call.project, call.name, wait_s, after)

    def has_news(answer: TicketAnswer) -> bool:
        return is_over(answer) or (after is not None and answer.told > after)

    return reply(call.line.poll(look, has_news, call.seconds("wait_s")))


def is_over(answer: TicketAnswer) -> bool:
    """Tell whether nothing more will happen to this ticket by itself."""
    return answer.ticket.state.is_final


HANDLERS: Mapping[Route, Handler] = {
    paths.SUBMIT: submit,
    paths.JOBS_SUBMIT: submit,
    paths.SUBMISSION: show,
}
