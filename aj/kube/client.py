"""One cluster as one user: get, list, create, patch, replace, delete, each of them one verb.

Questions are asked again while another try may help, and lists are read to their end. A change is sent
once, over a connection of its own, and never again: when its answer is lost the error says that it may
have happened.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from aj.base import packs
from aj.base.clock import Clock
from aj.base.errors import AjError, AuthError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.kube import errors
from aj.kube.config import Access
from aj.kube.credentials import Credential, Credentials
from aj.kube.errors import Asked
from aj.kube.resources import REVIEWS, Kind
from aj.model.json import Json
from aj.net import document, http
from aj.net.document import Document
from aj.net.http import Bearer, Limit, Request, Response
from aj.net.origin import Origin
from aj.net.retry import Retrying

if TYPE_CHECKING:
    from kubernetes.client.configuration import Configuration

    from aj.kube.line import Line
    from aj.net.pool import Pool

PAGE = 500  # objects a page, as `kubectl` asks: larger ones strain the server's memory
RESTARTS = 3  # of a list whose next page ran out of its time, as in a cluster that changes fast
PAUSES_S = (0.5, 2.0)  # before the second and third try of a question: somebody may wait for it
ANSWERED = tuple(range(300, 600))  # every status is an answer here; `errors` reads them
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MERGE = "application/merge-patch+json"
Query = Mapping[str, str]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class _Call:
    """One request to be: what it is about and what it says."""

    method: str
    path: str
    asked: Asked
    query: Query
    body: Json = None
    content: str = "application/json"
    limit: Limit = http.STANDARD


class Cluster:
    """One cluster. Safe between threads. `folder` is ours alone and holds certificates of kubeconfigs."""

    def __init__(self, access: Access, settings: Settings, clock: Clock, folder: Path) -> None:
        self.access = access
        self.clock = clock
        self._settings = settings
        self._folder = folder
        self._credentials = Credentials(access.user, settings, clock)
        self._lock = threading.Lock()
        self._pool: tuple[Credential, Pool] | None = None

    @property
    def namespace(self) -> str:
        """The namespace that is meant when none is named."""
        return self.access.namespace

    def configuration(self) -> Configuration:
        """Return the official client's configuration as it is good now, for its streams. Raises AuthError."""
        return self._line().configuration(self._credentials.get())

    # Questions

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Document:
        """Read one object. Raises NotFound, Refused without the right, AuthError, Unavailable."""
        return self._read(self._call("GET", kind, name, namespace))

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Document | None:
        """Read one object; None when there is none. Raises as `get`, NotFound when the cluster knows no such kind."""
        try:
            return self.get(kind, name, namespace)
        except NotFound as error:
            if error.hint is not None:  # the kind itself is what is missing
                raise
            return None

    def list(
        self, kind: Kind, namespace: str | None = None, *, labels: Labels | None = None, fields: str | None = None
    ) -> tuple[Document, ...]:
        """Read all objects of a kind to the last page, those with these labels. Raises as `get`."""
        query = {"limit": str(PAGE)}
        if labels:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in labels.items())
        if fields:
            query["fieldSelector"] = fields
        call = replace(self._call("GET", kind, None, namespace, verb="list"), query=query)
        for _ in range(RESTARTS):
            try:
                return self._pages(call)
            except Unavailable as error:
                if error.code != "expired":
                    raise
        return self._pages(call)

    def text(self, kind: Kind, name: str, part: str, query: Query, namespace: str | None = None) -> bytes:
        """Read a part of an object that is plain text, such as a pod's log. Raises as `get`."""
        call = self._call("GET", kind, name, namespace, part=part)
        return self._ask(replace(call, query=query)).body

    def path(self, path: str, doing: str) -> Document:
        """Read what stands at a path of the server, such as `/version`. Raises as `get`."""
        return self._read(_Call("GET", path, Asked(doing, "get", path, None, self.access.user.name), {}))

    def may(self, verb: str, resource: str, namespace: str | None = None) -> bool:
        """Ask whether this user may do something to `jobs.batch.volcano.sh` or `pods/log`. Raises as `get`."""
        plain, _, part = resource.partition("/")
        plural, _, group = plain.partition(".")
        attributes = {"verb": verb, "resource": plural, "group": group, "namespace": namespace or self.namespace}
        spec: dict[str, Json] = {"resourceAttributes": {**attributes, **({"subresource": part} if part else {})}}
        body: dict[str, Json] = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.name, "spec": spec}
        call = self._call("POST", REVIEWS, None, None)
        found = self._read(replace(call, body=body, asked=replace(call.asked, doing="ask for rights")))
        return found.flag("status", "allowed") is True

    # Changes

    def create(self, kind: Kind, body: Mapping[str, Json], namespace: str | None = None) -> Document:
        """Create an object, once. Unknown fields are refused by the server.

        Raises OutcomeUnknown when it may have happened; any other error means that it has not.
        """
        return self._send(self._creation(kind, body, namespace))

    def dry_run(self, kind: Kind, body: Mapping[str, Json], namespace: str | None = None) -> Document:
        """Let the server check an object without creating it. Raises as `get`, and Refused with its words."""
        call = self._creation(kind, body, namespace)
        return self._read(replace(call, query={**call.query, "dryRun": "All"}))

    def patch(self, kind: Kind, name: str, body: Mapping[str, Json], namespace: str | None = None) -> Document:
        """Merge some fields into an object, once. Raises as `create`, and NotFound."""
        return self._send(replace(self._call("PATCH", kind, name, namespace), body=body, content=_MERGE))

    def replace(self, kind: Kind, name: str, body: Mapping[str, Json], namespace: str | None = None) -> Document:
        """Put an object in the place of one, once; its `resourceVersion` guards it. Raises as `patch`."""
        return self._send(replace(self._call("PUT", kind, name, namespace), body=body))

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        grace_s: int | None = None,
        propagation: str = "Background",
    ) -> bool:
        """Delete an object, once, if it still is the one of this uid; False when there is none.

        Raises Refused (conflict) when another has its name by now, and OutcomeUnknown when it may have happened.
        """
        body: dict[str, Json] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self._send(replace(self._call("DELETE", kind, name, namespace), body=body))
        except NotFound:
            return False
        return True

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            if self._pool is not None:
                self._pool[1].close()
                self._pool = None

    # How

    def _creation(self, kind: Kind, body: Mapping[str, Json], namespace: str | None) -> _Call:
        call = self._call("POST", kind, None, namespace)
        return replace(call, body=body, query={"fieldValidation": "Strict"}, limit=http.LONG)

    def _call(
        self,
        method: str,
        kind: Kind,
        name: str | None,
        namespace: str | None,
        *,
        part: str | None = None,
        verb: str | None = None,
    ) -> _Call:
        place = (namespace or self.namespace) if kind.is_namespaced else None
        word = verb or _VERBS[method]
        what = f"{kind.name} {name}" if name else (f"{kind.plural}" if word == "list" else f"a {kind.name}")
        doing = f"{word} {what}{f' in namespace {place}' if place else ''}"
        resource = f"{kind.resource}/{part}" if part else kind.resource
        asked = Asked(doing, word, resource, place, self.access.user.name, changes=method != "GET")
        return _Call(method, kind.path(place, name, part), asked, {})

    def _pages(self, call: _Call) -> tuple[Document, ...]:
        found: list[Document] = []
        page = call
        while True:
            answer = self._read(page)
            found.extend(answer.each("items"))
            token = answer.text("metadata", "continue")
            if not token:
                return tuple(found)
            page = replace(call, query={**call.query, "continue": token})

    def _read(self, call: _Call) -> Document:
        """Ask a question: what changes nothing, whatever its method."""
        return document.of(self._ask(call), self._request(call))

    def _ask(self, call: _Call) -> Response:
        question = replace(call, asked=replace(call.asked, changes=False))
        try:
            return self._retrying(question)
        except AuthError:
            if not self._credentials.drop():
                raise
            return self._retrying(question)

    def _retrying(self, call: _Call) -> Response:
        return Retrying(_Asking(self, call), self.clock, PAUSES_S).ask(self._request(call))

    def once(self, call: _Call) -> Response:
        """Ask one time. Raises as `get`."""
        credential = self._credentials.get()
        return self._judged(call, self._pool_of(credential).ask(self._signed(call, credential)))

    def _send(self, call: _Call) -> Document:
        credential = self._credentials.get()
        request = self._signed(replace(call, limit=http.LONG), credential)
        try:
            answer = self._pool_of(credential).send(request)
        except Unavailable as error:  # it never left
            raise _definite(error, call) from error
        try:
            return document.of_change(self._judged(call, answer), request)
        except Unavailable as error:  # the server told that it did not take it: throttled
            raise _definite(error, call) from error

    def _judged(self, call: _Call, answer: Response) -> Response:
        if answer.status < 300:
            return answer
        raise errors.error(call.asked, answer.status, answer.headers, answer.body, self.clock.now())

    def _request(self, call: _Call) -> Request:
        query = f"?{urlencode(call.query, quote_via=quote)}" if call.query else ""
        body = None if call.body is None else json.dumps(call.body, separators=(",", ":"), allow_nan=False).encode()
        return Request(
            call.method,
            f"{self.access.server}{call.path}{query}",
            call.asked.doing,
            headers={"Content-Type": call.content} if body is not None else {},
            body=body,
            limit=call.limit,
            expects=ANSWERED,
        )

    def _signed(self, call: _Call, credential: Credential) -> Request:
        from aj.kube.line import authorization

        request = self._request(call)
        if credential.token:
            return request.signed(Bearer(credential.token, (Origin.of_url(self.access.server),)))
        header = authorization(credential)
        return replace(request, headers={**request.headers, "Authorization": header}) if header else request

    def _pool_of(self, credential: Credential) -> Pool:
        """Return the connections for a credential: a certificate is part of them."""
        packs.need("cloud")
        from aj.net.pool import Pool

        with self._lock:
            if self._pool is None or self._pool[0] != credential:
                line = self._line()
                self._pool = credential, Pool(self._settings, self.clock, lambda: line.dial(credential))
            return self._pool[1]

    def _line(self) -> Line:
        packs.need("cloud")
        from aj.kube.line import Line  # 0.6 s for the official client, at the first question to a cluster

        return Line(self.access, self._settings, self._folder)


@dataclass(frozen=True)
class _Asking:
    """A transport that asks a cluster one question, with who we are at that moment."""

    cluster: Cluster
    call: _Call

    def ask(self, request: Request) -> Response:
        return self.cluster.once(self.call)

    def send(self, request: Request) -> Response:
        raise AssertionError("a question is never sent as a change")


def _definite(error: AjError, call: _Call) -> RemoteError:
    """Say that nothing was changed, with an error that cannot be taken for an unknown outcome."""
    return RemoteError(f"nothing was changed: {error.message}", hint=error.hint, code=error.code, details=error.details)


def is_refusal(error: AjError) -> bool:
    """Tell whether a cluster has answered, and said no."""
    return isinstance(error, Refused | NotFound | AuthError) and not isinstance(error, OutcomeUnknown)
