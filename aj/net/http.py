"""Requests and answers of the services we speak to, and what a transport promises about them.

A failure always tells how far a change got: Unavailable and a refusal mean that nothing happened,
OutcomeUnknown that it may have. No redirect is ever followed, and a secret that goes with a request
names the origins it was issued for: any other is refused before a connection is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

from aj.base import packs
from aj.base.clock import Clock
from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.net.origin import Origin

if TYPE_CHECKING:
    from aj.net.pool import Pool


@dataclass(frozen=True)
class Limit:
    """How long an answer may take: from start to end, or, with `stall`, between two signs of life."""

    seconds: float
    stall: bool = False


NO_HOST = "no-host"  # the code of an error about a name that nobody knows just now
QUICK = Limit(15)  # one small document
STANDARD = Limit(30)  # one page of a list
LONG = Limit(60)  # a query over everything, or a change that the service works on before it answers
BLOB = Limit(60, stall=True)  # as large as it is, as long as it moves


@dataclass(frozen=True)
class Bearer:
    """A token and the origins it was issued for."""

    token: str = field(repr=False)
    origins: tuple[Origin, ...]


@dataclass(frozen=True)
class Request:
    """One request. `doing` completes "could not …"; `resource` is what a caller without the right lacks it on.

    `expects` holds statuses of 300 or more that are answers here. The address may be signed, so it is not shown.
    Without `is_answer_read` the status alone matters: the body of a success is neither read nor waited for.
    """

    method: str
    url: str = field(repr=False)
    doing: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    limit: Limit = STANDARD
    bearer: Bearer | None = field(default=None, repr=False)
    resource: str | None = None
    expects: tuple[int, ...] = ()
    is_answer_read: bool = True

    @property
    def origin(self) -> Origin:
        """Where it goes. Raises RemoteError when the address is none."""
        try:
            return Origin.of_url(self.url)
        except ValueError as error:
            raise RemoteError(f"could not {self.doing}: its address is {error}", code="bad-address") from None

    def signed(self, bearer: Bearer) -> Request:
        """Return the same request with a token."""
        return replace(self, bearer=bearer)


@dataclass(frozen=True)
class Response:
    """A whole answer: below 300, or one that was expected. Header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def header(self, name: str) -> str | None:
        """Return a header, or None; empty counts as absent."""
        return self.headers.get(name.lower()) or None


class Transport(Protocol):
    """Something that carries a request to a service and brings the answer."""

    def ask(self, request: Request) -> Response:
        """Send what may safely be sent twice: a question, or a change to what is there already.

        Raises RemoteError (Unavailable when another try may help), AuthError, NotFound, Refused.
        """

    def send(self, request: Request) -> Response:
        """Send a change, once. Raises as `ask`, and OutcomeUnknown when it may have happened."""


def foreign(host: str, expected: str) -> RemoteError:
    """Say that an address leads to a host where it may not lead."""
    return RemoteError(f"a link to host {host} was not followed: it is not {expected}", code="foreign-host")


def refuse_strangers(request: Request) -> None:
    """Raise RemoteError when the token of a request was not issued for where the request goes."""
    origin = request.origin
    if request.bearer is None:
        return
    if not (origin.is_private_enough and any(known.covers(origin) for known in request.bearer.origins)):
        raise foreign(str(origin), " or ".join(str(known) for known in request.bearer.origins))


def connect(settings: Settings, clock: Clock) -> Pool:
    """Make the one pool of a process. Unpacks the cloud part of the single-file program on first use."""
    packs.need("cloud")
    from aj.net.pool import Pool  # 55 ms for urllib3 and ssl, in the daemon alone

    return Pool(settings, clock)
