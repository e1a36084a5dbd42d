"""One conversation with the daemon: who answers is known, errors come back in their own class.

A read is asked again when the daemon changed in between. A change is sent again only when it is
certain that nothing of it was done; when its answer was lost, that is told and nobody guesses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeVar
from urllib.parse import quote

from aj.base.errors import AjError, DaemonError
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.client import launch, presence
from aj.client.launch import Telling
from aj.net.uds import Answer, Lost, Nonsense, NotSent, Silent, Stream, Wire
from aj.store.runtime import Place
from aj.version import VERSION
from aj.wire import codec, errors, paths, version
from aj.wire.daemon import Presence
from aj.wire.messages import Hello
from aj.wire.paths import Route

T = TypeVar("T")
Query = Mapping[str, str | int | float | None]
# A daemon that leaves is followed by the next one; more than this many in one call is a fault.
TRIES = 4


class AnswerLost(Exception):
    """A change was sent and its answer never came: it may have been made or not."""


@dataclass
class Line:
    """Talks to the daemon of these settings about one project. Not for several threads; for each process of a fork."""

    settings: Settings
    project: Project | None = None
    telling: Telling = field(default_factory=Telling)
    _hello: Hello | None = None
    _wire: Wire | None = None
    _told_drift: bool = False
    _process: int = field(default_factory=os.getpid)

    @property
    def place(self) -> Place:
        """The runtime folder. Raises DaemonError when it is not private."""
        return presence.place_of(self.settings)

    def hello(self) -> Hello:
        """Return who answers, starting the daemon if need be. Raises DaemonError."""
        if self._process != os.getpid():
            self.forget()  # a fork shares the connection, and an answer would reach one of the two
            self._process = os.getpid()
        if self._hello is None:
            self._hello = launch.ensure(self.settings, self.telling)
            self._wire = Wire(self.place.socket)
        return self._hello

    def read(self, kind: type[T], route: Route, *segments: str, query: Query | None = None) -> T:
        """Ask for something. Raises the error that the daemon answered, or DaemonError."""
        target = route.path(*segments, query=query)
        for _ in range(TRIES):
            wire = self._open(route)
            try:
                answer = wire.read(target, self._headers(), silence_s=paths.SILENCE_S)
            except Silent as error:
                raise self._silent(error) from error
            except (NotSent, Lost):
                self.forget()
                continue
            except Nonsense as error:
                raise self._foreign(error) from error
            if not self._is_to_ask_again(answer):
                return _decoded(kind, answer)
        raise DaemonError("the daemon comes and goes", code="unsteady", hint="`aj daemon logs`")

    def change(self, kind: type[T], route: Route, *segments: str, query: Query | None = None, body: object = None) -> T:
        """Ask for a change, once. Raises AnswerLost when nobody knows whether it was made."""
        target = route.path(*segments, query=query)
        raw = b"" if body is None else json.dumps(codec.dump(body), separators=(",", ":")).encode("ascii")
        headers = {**self._headers(), "Content-Type": "application/json"}
        if route.keyed:
            headers[paths.KEY] = os.urandom(16).hex()
        for _ in range(TRIES):
            wire = self._open(route)
            self._tell_drift(route)
            try:
                answer = wire.change(route.method, target, headers, raw, silence_s=paths.SILENCE_S)
            except NotSent:
                self.forget()
                continue
            except Lost as error:
                self.forget()
                raise AnswerLost(str(error)) from error
            except Nonsense as error:
                raise self._foreign(error) from error
            if not self._is_to_ask_again(answer):
                return _decoded(kind, answer)
        raise DaemonError("the daemon comes and goes", code="unsteady", hint="`aj daemon logs`")

    def stream(self, route: Route, *, query: Query | None = None, headers: Mapping[str, str] | None = None) -> Stream:
        """Open an answer that goes on. Raises DaemonError, or Lost when the daemon is just leaving."""
        wire = self._open(route)
        try:
            stream = wire.stream(
                route.path(query=query), {**self._headers(), **(headers or {})}, silence_s=paths.SILENCE_S
            )
        except Silent as error:
            raise self._silent(error) from error
        except NotSent as error:
            self.forget()
            raise Lost(str(error)) from error
        except Nonsense as error:
            raise self._foreign(error) from error
        if stream.status != 200:
            refused = errors.from_document(presence.parsed(stream.rest()))
            stream.close()
            self.forget()
            raise refused or DaemonError(f"the daemon answered {stream.status}")
        return stream

    def forget(self) -> None:
        """Know nothing of the daemon any more, and hang up."""
        if self._wire is not None:
            self._wire.close()
        self._hello, self._wire = None, None

    def _open(self, route: Route) -> Wire:
        hello = self.hello()
        if route.capability not in hello.capabilities:
            raise DaemonError(
                f"the daemon (aj {hello.version}) does not know {route.capability!r}",
                code="no-capability",
                hint="`aj daemon restart`",
                details={"daemon": hello.version, "client": VERSION},
            )
        assert self._wire is not None, "a hello came over it"
        return self._wire

    def _headers(self) -> dict[str, str]:
        headers = {paths.CLIENT: VERSION, paths.REQUEST: os.urandom(6).hex()}
        if self.project is not None:
            headers[paths.PROJECT] = quote(os.fsencode(self.project.directory))
        return headers

    def _tell_drift(self, route: Route) -> None:
        """Tell once, when work begins, that the daemon was started with another environment."""
        if not route.begins or self._told_drift or self._hello is None:
            return
        self._told_drift = True
        if names := version.drift(self.settings, self._hello):
            self.telling.drift(names)

    def _is_to_ask_again(self, answer: Answer) -> bool:
        """Tell whether the daemon certainly did nothing, and the next hello is to be waited for."""
        if answer.status != 503:
            return False
        refused = errors.from_document(presence.parsed(answer.body))
        if refused is None or refused.code not in ("leaving", "busy"):
            return False
        self.forget()
        return True

    def _silent(self, error: Silent) -> AjError:
        place = self.place
        said = place.read()
        self.forget()
        if said is None:
            return DaemonError(f"the daemon does not answer: {error}", code="hung", hint="`aj daemon restart`")
        return presence.hung(place, said.who, str(error))

    def _foreign(self, error: Nonsense) -> AjError:
        self.forget()
        return presence.foreign(self.place, presence.Sight(Presence.FOREIGN, why=str(error)))


def _decoded(kind: type[T], answer: Answer) -> T:
    """Read an answer leniently, since a newer daemon may say more. Raises the error that it holds."""
    value = codec.parse(answer.body, where="answer")
    if (refused := errors.from_document(value)) is not None:
        raise refused
    return codec.load(kind, value, where="answer", lenient=True)


def lines_of(stream: Stream) -> Iterator[str]:
    """Yield the lines of a stream as text."""
    for line in stream.lines():
        yield line.decode("utf-8", "replace").rstrip("\r\n")
