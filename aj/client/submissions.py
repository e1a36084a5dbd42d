"""Submissions: promise one to the daemon, follow it to its outcome, ask what became of an earlier one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from aj.base.errors import AjError, DaemonError, NotFound, OutcomeUnknown, Refused
from aj.client.line import AnswerLost, Line
from aj.model.job import JobSpec
from aj.model.step import Step
from aj.model.ticket import Mode, Ticket
from aj.wire import paths
from aj.wire.messages import Submission, TicketAnswer

HOLD_S = 600.0  # one question waits so long; then it is asked again
DRAWS = 8  # of 4 billion ids: more clashes than this are no chance


def draw_id() -> str:
    """Draw an AJ ID: 8 lower-case hex characters."""
    return os.urandom(4).hex()


class Submissions:
    """What a caller can do with submissions."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def submit(
        self,
        spec: JobSpec,
        mode: Mode,
        *,
        wait: bool = False,
        again: Callable[[str], JobSpec] | None = None,
        accepted: Callable[[Ticket], None] | None = None,
        told: Callable[[Step], None] | None = None,
    ) -> TicketAnswer:
        """Promise a submission and return its ticket; with `wait` follow it until its outcome is known.

        `again` makes the spec anew for another id when this one is taken. `accepted` is told the ticket
        once the promise is durable: from then on it goes on without the caller. `told` hears of each
        step while it is followed. Raises the daemon's
        refusal, OutcomeUnknown when nobody knows whether it was accepted, DaemonError.
        """
        answer = self._accept(spec, mode, again)
        if accepted is not None:
            accepted(answer.ticket)
        return self.follow(answer, told) if wait else answer

    def get(self, key: str, *, wait_s: float = 0.0, after: int | None = None) -> TicketAnswer:
        """Return what became of a submission, waiting at most so long for its outcome. Raises NotFound.

        With `after` a step behind that number ends the waiting too.
        """
        return self._line.read(TicketAnswer, paths.SUBMISSION, key, query={"wait_s": wait_s or None, "after": after})

    def follow(self, answer: TicketAnswer, told: Callable[[Step], None] | None = None) -> TicketAnswer:
        """Wait until the outcome of a submission is known, also across a restart of the daemon.

        `told` hears of each step on the way.
        """
        warnings, known = answer.warnings, 0
        while not answer.ticket.state.is_final:
            answer = self.get(answer.ticket.id, wait_s=HOLD_S, after=known)
            known = answer.told
            if told is not None:
                for step in answer.steps:
                    told(step)
        return replace(answer, warnings=tuple(dict.fromkeys((*warnings, *answer.warnings))))

    def _accept(self, spec: JobSpec, mode: Mode, again: Callable[[str], JobSpec] | None) -> TicketAnswer:
        for _ in range(DRAWS):
            try:
                return self._promise(spec, mode)
            except Refused as error:
                if error.code != "id-taken" or again is None:
                    raise
            spec = again(draw_id())
        raise Refused(f"{DRAWS} ids in a row were taken", code="id-taken", hint="try again")

    def _promise(self, spec: JobSpec, mode: Mode) -> TicketAnswer:
        before = self._line.hello().instance
        try:
            return self._line.change(TicketAnswer, paths.SUBMIT, body=Submission(spec.id, mode, spec))
        except AnswerLost as lost:
            return self._find_out(spec.id, before, lost)

    def _find_out(self, key: str, before: str, lost: AnswerLost) -> TicketAnswer:
        """Ask what became of a submission whose answer was lost. Raises OutcomeUnknown, DaemonError if nothing did."""
        try:
            return self.get(key)
        except NotFound as error:
            if self._line.hello().instance != before:
                # The one that was asked is gone, and nothing of it is on disk: it never was accepted.
                raise DaemonError(
                    "the daemon ended before it accepted the submission; nothing was submitted",
                    code="not-accepted",
                    hint="run it again",
                ) from error
            raise _unknown(key, lost) from error
        except AjError as error:
            raise _unknown(key, lost) from error


def _unknown(key: str, lost: AnswerLost) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"the answer to submission {key} was lost: {lost}",
        hint=f"`aj queue reconcile q-{key}`",
        details={"id": key, "ticket": f"q-{key}"},
    )
