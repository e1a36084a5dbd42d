"""Method and path to the one function that answers, and every error to its envelope.

Here is one of the few nets of the house that catch everything: what nobody foresaw is logged and
crosses as its type and message, never as a traceback, and the daemon goes on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from aj.base import redact
from aj.base.errors import AjError, NotFound, UserError
from aj.base.noun import dataclass
from aj.daemon import call as calls
from aj.daemon.call import Answer, Call, Handler
from aj.daemon.engine import Engine
from aj.daemon.front import Reply, Request
from aj.daemon.lifecycle import Gate
from aj.daemon.log import Log
from aj.daemon.replay import Replays
from aj.daemon.routes import (
    buckets,
    cloudjobs,
    code,
    deployments,
    inventory,
    jobs,
    k8s,
    queue,
    spend,
    submissions,
    watches,
    workload,
)
from aj.daemon.stream import HungUp, Line
from aj.wire import errors, paths
from aj.wire.errors import Malformed, Unexpected
from aj.wire.paths import Match, NoSuchMethod, NoSuchPath, Route

HANDLERS: Mapping[Route, Handler] = {
    **submissions.HANDLERS,
    **queue.HANDLERS,
    **jobs.HANDLERS,
    **deployments.HANDLERS,
    **workload.HANDLERS,
    **inventory.HANDLERS,
    **cloudjobs.HANDLERS,
    **code.HANDLERS,
    **watches.HANDLERS,
    **k8s.HANDLERS,
    **buckets.HANDLERS,
    **spend.HANDLERS,
}
_ID = re.compile(r"[A-Za-z0-9-]{1,64}\Z", re.ASCII)


def request_id(headers: Mapping[str, str]) -> str:
    """Return the caller's id of this request, or a new one when it gave none that can be repeated."""
    word = headers.get(paths.REQUEST, "")
    return word if _ID.match(word) else os.urandom(6).hex()


@dataclass(frozen=True)
class Router:
    """The doorman: who wants what, and may it be asked now. Safe for several threads."""

    engine: Engine
    gate: Gate
    log: Log
    replays: Replays
    handlers: Mapping[Route, Handler]

    def answer(self, request: Request, line: Line, number: str) -> Answer:
        """Answer one request. Raises HungUp when the caller did meanwhile."""
        about = f"{number} {request.method} {request.path}"
        return self._netted(about, lambda: self._answer(self._match(request), request, line, about))

    def _netted(self, about: str, act: Callable[[], Answer]) -> Answer:
        """Act, and turn every error into an answer."""
        try:
            return act()
        except AjError as error:
            self.log.debug(f"{about}: {errors.type_of(error)}: {error.message}")
            return refusal(error)
        except HungUp:
            raise
        except Exception as error:  # noqa: BLE001  one bad request must not end the daemon
            words = f"{type(error).__name__}: {redact.text(str(error))}"
            self.log.error(f"{about}: {words}", error)
            return refusal(Unexpected(words, hint=f"the daemon's log has more, under {about.partition(' ')[0]}"))

    def _match(self, request: Request) -> Match:
        try:
            return paths.match(request.method, request.path)
        except NoSuchPath as missing:
            if missing.noun:
                raise NotFound(f"no such {missing.noun}", code=f"no-such-{missing.noun}") from None
            raise NotFound(f"no route {request.path}", code="no-route") from None
        except NoSuchMethod as other:
            allowed = ", ".join(other.allowed)
            raise Malformed(f"{request.method} is not possible here, only {allowed}", status=405) from None

    def _answer(self, found: Match, request: Request, line: Line, about: str) -> Answer:
        route = found.route
        tell = self.log.info if route.mutates else self.log.debug
        tell(f"{about} by {request.headers.get(paths.CLIENT, 'nobody')}")
        call = Call(
            engine=self.engine,
            route=route,
            segments=found.segments,
            query=calls.query(request, route),
            project=calls.project(request),
            body=request.body,
            line=line,
            headers=request.headers,
        )
        if route.begins:
            self.gate.refuse_when_retiring()
        if not (route.mutates and route.holds):
            with self.gate.inside(mutates=route.mutates):
                return self.handlers[route](call)
        return line.hold(lambda: self._netted(about, lambda: self._change(call, request)))

    def _change(self, call: Call, request: Request) -> Reply:
        """Make one change, once; it goes on to its end when the caller hangs up."""
        with self.gate.inside(mutates=True):
            if not call.route.keyed:
                return self._done(call)
            key = request.headers.get(paths.KEY, "")
            if not _ID.match(key):
                raise UserError(f"a change needs a key of letters and digits in {paths.KEY}", code="no-key")
            asked = f"{request.method} {request.path}?{request.query}\n{call.project}\n".encode() + request.body
            return self.replays.once(key, asked, lambda: self._done(call))

    def _done(self, call: Call) -> Reply:
        """Make the change; a refusal is an answer too, and is given again to the same key."""
        try:
            answer = self.handlers[call.route](call)
        except AjError as error:
            return refusal(error)
        assert isinstance(answer, Reply), "a change answers with one document"
        return answer


def refusal(error: AjError) -> Reply:
    """Return an error as an answer."""
    headers: dict[str, str] = {}
    after_s = error.details.get("retry_after_s")
    status = errors.status_of(error)
    if status == 503:
        headers["Retry-After"] = str(max(1, round(after_s))) if isinstance(after_s, int | float) else "1"
    return Reply(status, errors.document(error), headers)
