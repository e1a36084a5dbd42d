"""The deployment that this program runs in, as the place where its jobs come from.

A claim that was sent and not answered may have been made. It is kept, and settled before anything else is
looked for: so keep one `Deployment` for the life of the program, also across errors.
"""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path
from types import TracebackType

from aj.base import settings
from aj.base.clock import SYSTEM, Clock
from aj.base.errors import NotFound, Refused, TimedOut, UserError
from aj.base.settings import Settings
from aj.model.claim import LONGEST_WAIT_S, Candidate, SelectedJob
from aj.wire import paths
from aj.wire.deployment import Claiming, Found
from aj.workload import speech
from aj.workload.job import CurrentJob
from aj.workload.speech import Speech

BUDGET_S = 30.0  # for the turn of this caller; an answer that is late is waited for beyond it
AGAIN_S = 0.1  # before another look, when somebody else had the job first
STALE, USED = "candidate-stale", "execution-used"


class Deployment:
    """Where jobs come from. Safe between threads: one caller at a time looks for work."""

    def __init__(self, name: str, speech: Speech, clock: Clock = SYSTEM) -> None:
        self.name = name
        self._speech = speech
        self._clock = clock
        self._turn = threading.Lock()
        self._pending: tuple[str, Candidate] | None = None

    def __enter__(self) -> Deployment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open between calls."""

    @property
    def has_pending_claim(self) -> bool:
        """Whether a claim was sent of which nobody knows what came of it."""
        return self._pending is not None

    def next_job(self, timeout: float = LONGEST_WAIT_S) -> CurrentJob | None:
        """Claim the next job and return it; None when none was found within `timeout` seconds (0 to 20).

        Zero looks once. The time limits the search alone: a claim that was sent is settled, however long its
        answer takes. None means that no claim of this program is open which might still get it a job.
        Raises Refused (`execution-used`), AuthError, and DaemonError when the daemon stays away for two
        minutes; a claim that is still open then is settled by the next call.
        """
        if not 0 <= timeout <= LONGEST_WAIT_S:
            raise UserError(f"timeout={timeout:g}: from 0 to {LONGEST_WAIT_S:g} seconds", code="bad-timeout")
        limit = self._clock.monotonic() + timeout
        if not self._turn.acquire(timeout=BUDGET_S):
            raise TimedOut(f"another thread of this program has been looking for work for {BUDGET_S:g} s")
        try:
            return self._next(limit, only_once=timeout == 0)
        finally:
            self._turn.release()

    def _next(self, limit: float, *, only_once: bool) -> CurrentJob | None:
        selected = self._settle() if self._pending is not None else None
        while selected is None:
            left_s = max(0.0, limit - self._clock.monotonic())
            candidate = self._discover(left_s, rides=not only_once)
            if candidate is None:
                return None
            self._pending = (str(uuid.uuid4()), candidate)  # before it is sent: from then on it may have been made
            selected = self._settle()
            if selected is None and (only_once or self._clock.monotonic() >= limit):
                return None
            if selected is None:
                self._clock.sleep(min(AGAIN_S, max(0.0, limit - self._clock.monotonic())))
        return CurrentJob(selected, self._speech)

    def _discover(self, wait_s: float, *, rides: bool) -> Candidate | None:
        query = {"timeout_s": round(wait_s, 3)}
        return self._speech.ask(Found, paths.WORK_CANDIDATE, self.name, query=query, rides=rides).candidate

    def _settle(self) -> SelectedJob | None:
        """Make the pending claim, or find that it was made; None when the job is somebody else's.

        Raises Refused when the execution is over already. Any other error leaves the claim pending.
        """
        assert self._pending is not None, "there is something to settle"
        execution, candidate = self._pending
        asked = Claiming(execution, candidate.submission_revision, candidate.previous_execution_id)
        try:
            selected = self._speech.ask(SelectedJob, paths.WORK_CLAIM, self.name, candidate.job_id, body=asked)
        except NotFound:
            self._pending = None  # it was deleted
            return None
        except Refused as error:
            if error.code not in (STALE, USED):
                raise
            self._pending = None
            if error.code == USED:
                raise
            return None
        self._pending = None
        return selected


_known: dict[tuple[str, ...], Deployment] = {}
_guard = threading.Lock()


def current_deployment(given: Settings | None = None) -> Deployment:
    """Return the deployment that this process runs in: the same object at every call.

    It is named by AJ_API_URL, AJ_DEPLOYMENT_ID and AJ_WORKLOAD_TOKEN_FILE. Raises UserError without them.
    """
    env = given or settings.read()
    words = [env.get(name) for name in ("AJ_API_URL", "AJ_DEPLOYMENT_ID", "AJ_WORKLOAD_TOKEN_FILE")]
    url, name, token_file = words
    if url is None or name is None or token_file is None:
        hint = "`aj deployment create NAME -- COMMAND` runs it in one"
        raise UserError("this program does not run in a deployment", hint=hint, code="no-deployment")
    send = speech.over_socket(speech.socket_of(url))
    with _guard:
        key = (url, name, token_file, str(os.getpid()))
        if key not in _known:
            spoken = Speech(send, lambda: Path(token_file).read_text().strip(), SYSTEM)
            _known[key] = Deployment(name, spoken)
        return _known[key]
