"""The Resource Manager: where a resource's address comes from, and the few verbs every room here uses.

An address is built from its parts, each of them percent-encoded and none of them empty, so that no
name can lead to another resource than the one it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TypeVar
from urllib.parse import quote, urlencode

from aj.base.clock import Clock
from aj.base.errors import RemoteError, UserError
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.net import document, http, pages
from aj.net.clouds import Cloud
from aj.net.document import Document
from aj.net.http import Limit, Request, Response, Transport
from aj.net.origin import Origin
from aj.net.pages import Listing
from aj.net.retry import Retrying
from aj.net.token import Signing, TokenSource

ML = "Microsoft.MachineLearningServices"
WORKSPACE_API = "2024-04-01"
T = TypeVar("T")
Query = Mapping[str, str]
_WORKSPACE_ID = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.MachineLearningServices/workspaces/([^/]+)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Session:
    """How to speak to one cloud as one user, in one tenant (None: the credential's own). `pool` tries once."""

    pool: Transport = field(repr=False)
    cloud: Cloud
    tokens: TokenSource = field(repr=False)
    clock: Clock = field(repr=False)
    tenant: str | None = None

    @property
    def manager(self) -> Transport:
        """The transport to the Resource Manager."""
        return self.signed(self.cloud.arm_scope, self.cloud.arm)

    @property
    def plain(self) -> Transport:
        """The transport to addresses that are signed themselves: no token goes with them."""
        return Retrying(self.pool, self.clock)

    def signed(self, scope: str, origin: Origin) -> Transport:
        """Return a transport whose token goes to one origin alone. Questions are asked again, their token's too."""
        return Retrying(Signing(self.pool, self.tokens, scope, (origin,), self.tenant), self.clock)


@dataclass(frozen=True)
class Workspace:
    """The coordinates of a workspace."""

    subscription: str
    group: str
    name: str

    @classmethod
    def of_id(cls, resource_id: str) -> Workspace:
        """Read the ARM id of a workspace. Raises RemoteError."""
        found = _WORKSPACE_ID.match(resource_id)
        if not found:
            raise RemoteError(f"`{resource_id}` is not the id of a workspace", code="bad-answer")
        return cls(*found.groups())

    @property
    def parts(self) -> tuple[str, ...]:
        return (*group_parts(self.subscription, self.group), "providers", ML, "workspaces", self.name)

    @property
    def id(self) -> str:
        """Its ARM id."""
        return "/" + "/".join(self.parts)

    @property
    def path(self) -> str:
        """Its ARM id as a part of an address. Raises UserError when a coordinate is empty."""
        return path(*self.parts)

    def __str__(self) -> str:
        return f"{self.name} ({self.subscription}/{self.group})"


def group_parts(subscription: str, group: str) -> tuple[str, ...]:
    """Return the way to a resource group."""
    return ("subscriptions", subscription, "resourceGroups", group)


def region_parts(subscription: str, region: str) -> tuple[str, ...]:
    """Return the way to what Machine Learning has in one region."""
    return ("subscriptions", subscription, "providers", ML, "locations", region)


def path(*parts: str) -> str:
    """Join the parts of a path, each encoded whole. Raises UserError when one is empty or a step upwards."""
    for number, part in enumerate(parts):
        if not part or part in (".", ".."):
            before = f" after `{parts[number - 1]}`" if number else ""
            raise UserError(f"an address cannot be built: there is no name{before}", code="empty-name")
    return "".join("/" + quote(part, safe="") for part in parts)


def url(base: Origin, way: str, query: Query) -> str:
    """Return a whole address."""
    return f"{base}{way}" + (f"?{urlencode(query, quote_via=quote, safe='$')}" if query else "")


@dataclass(frozen=True)
class Call:
    """One kind of call to the Resource Manager. `doing` completes "could not …"."""

    session: Session
    parts: tuple[str, ...]
    version: str
    doing: str
    query: Query = field(default_factory=dict)
    limit: Limit = http.STANDARD

    def get(self) -> Document:
        """Read one resource. Raises NotFound, and as Transport.ask."""
        request = self.request("GET")
        return document.of(self.session.manager.ask(request), request)

    def read(self, made: Callable[[Document], T], *, limit: int | None = None) -> Listing[T]:
        """Read a list to its end, or until `limit`. Raises as Transport.ask."""
        return pages.read(self.session.manager, self.request("GET"), made, limit=limit)

    def each(self) -> Iterator[Document]:
        """Yield the rows of a list, each page fetched when it is wanted. Raises as Transport.ask."""
        return pages.each(self.session.manager, self.request("GET"))

    def put_same(self, body: Json) -> Document:
        """Put what has the same bytes whenever it is put, so that it may be repeated. Raises as Transport.ask."""
        request = self.request("PUT", body)
        return document.of(self.session.manager.ask(request), request)

    def put(self, body: Json) -> Document:
        """Put, once. Raises as Transport.send."""
        request = self.request("PUT", body)
        return document.of_change(self.session.manager.send(request), request)

    def post(self, expects: tuple[int, ...] = ()) -> Response:
        """Post without a body, once. Raises as Transport.send."""
        return self.session.manager.send(self.request("POST", expects=expects))

    def delete(self, expects: tuple[int, ...] = ()) -> Response:
        """Delete, once. Raises as Transport.send."""
        return self.session.manager.send(self.request("DELETE", expects=expects))

    def request(self, method: str, body: Json = None, *, expects: tuple[int, ...] = ()) -> Request:
        """Make the request of this call. Raises UserError when a part of its address is empty."""
        return Request(
            method,
            url(self.session.cloud.arm, path(*self.parts), {"api-version": self.version, **self.query}),
            self.doing,
            headers={"Content-Type": "application/json"} if body is not None else {},
            body=None if body is None else json.dumps(body, separators=(",", ":"), allow_nan=False).encode(),
            limit=self.limit,
            resource="/" + "/".join(self.parts),
            expects=expects,
        )


def in_workspace(
    session: Session,
    workspace: Workspace,
    *parts: str,
    doing: str,
    query: Query | None = None,
    limit: Limit = http.STANDARD,
) -> Call:
    """Return a call to something in a workspace."""
    return Call(session, (*workspace.parts, *parts), WORKSPACE_API, doing, query or {}, limit)
