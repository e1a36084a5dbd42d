"""A Resource Manager and a data plane on loopback that check every request by the published definitions.

They are not Azure: they prove that what we send is legal and that we read what may be answered. Their own
answers are checked by the same definitions. A request that breaks a rule is noted and answered 400, and
the fixture fails the test at its end.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from tests.servers.loopback import Answer, Got, problem
from tests.servers.spec import Definitions, Route, routes

ML = "/providers/Microsoft.MachineLearningServices"
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9\-_]{0,254}\Z")  # of jobs, datastores and environments, when they are put
# Nothing is published about these two; their shape is what the service is known to answer.
SINGULARITY = (
    Route(
        "GET",
        "/subscriptions/{subscriptionId}" + ML + "/locations/{location}/instanceTypeSeries",
        frozenset({"api-version"}),
        "2021-03-01-preview",
    ),
    Route(
        "GET",
        "/subscriptions/{subscriptionId}/providers/Microsoft.Singularity/images",
        frozenset({"api-version"}),
        "2020-12-01-preview",
    ),
)
ROUTES = (
    *routes("subscriptions-2022-12-01.json", version="2022-12-01"),
    *routes("resourcegraph-2021-03-01.json", version="2021-03-01"),
    *routes("ml-arm-routes.json", version="2024-04-01"),
    *SINGULARITY,
)
HISTORY = tuple(routes("runhistory.json", version=None))
ARM_KINDS = Definitions(
    "ml-arm-2023-10-01.definitions.json", "resourcegraph-2021-03-01.json", "subscriptions-2022-12-01.json"
)
HISTORY_KINDS = Definitions("runhistory.json")
# What a PUT to a collection must hold, and what is kept there.
KINDS = {"jobs": "JobBase", "datastores": "Datastore", "versions": "EnvironmentVersion", "computes": "ComputeResource"}
LIST_VIEWS = ("ActiveOnly", "ArchivedOnly", "All")


@dataclass
class Checked:
    """What both servers do: know their tokens, note what breaks a rule, give lists page by page."""

    tokens: dict[str, str] = field(default_factory=dict)
    scope: str = ""
    broken: list[str] = field(default_factory=list)
    page_rows: int = 1
    url: str = ""
    seen_ids: set[str] = field(default_factory=set)
    challenge: str = 'Bearer error="invalid_token"'
    links: set[str] = field(default_factory=set)

    def refuse(self, got: Got, *faults: str) -> Answer:
        self.broken += [f"{got.target}: {fault}" for fault in faults]
        return problem(400, "BrokenRule", "; ".join(faults))

    def common(self, got: Got) -> Answer | None:
        """Check what every request carries; an answer when it is refused."""
        request_id = got.headers.get("x-ms-client-request-id", "")
        faults = []
        if not _is_uuid(request_id) or request_id in self.seen_ids:
            faults.append(f"x-ms-client-request-id {request_id!r} is not a new uuid")
        self.seen_ids.add(request_id)
        if not re.match(r"aj/\d", got.headers.get("user-agent", "")):
            faults.append("User-Agent does not name aj")
        if got.body and got.headers.get("content-type") != "application/json":
            faults.append("a body without its content type")
        if faults:
            return self.refuse(got, *faults)
        scheme, _, token = got.headers.get("authorization", "").partition(" ")
        if scheme == "Bearer" and self.tokens.get(token) == self.scope:
            return None
        if scheme == "Bearer" and token in self.tokens:
            self.broken.append(f"{got.target}: a token for {self.tokens[token]} came here")
        return problem(
            401, "ExpiredAuthenticationToken", "the token is not good", headers={"WWW-Authenticate": self.challenge}
        )

    def route(self, got: Got, known: Iterable[Route]) -> tuple[Route, dict[str, str]] | Answer:
        """Find the route of a request and check its query."""
        for route in known:
            names = route.match(got.method, got.path)
            if names is not None:
                faults = self._query_faults(got, route)
                return self.refuse(got, *faults) if faults else (route, names)
        return self.refuse(got, "no such route")

    def _query_faults(self, got: Got, route: Route) -> list[str]:
        if self.as_link(got) in self.links:
            return []  # we named this address ourselves
        names = [name for name, _ in got.query]
        allowed = route.query | ({"api-version"} if route.version else set())
        faults = [f"query {name} is not documented" for name in names if name not in allowed]
        faults += [f"query {name} stands twice" for name in set(names) if names.count(name) > 1]
        if got.value("api-version") != route.version:
            faults.append(f"api-version {got.value('api-version')} instead of {route.version}")
        view = got.value("listViewType")
        if view is not None and view not in LIST_VIEWS:
            faults.append(f"listViewType {view} is none of {LIST_VIEWS}")
        return faults

    def page(self, got: Got, rows: list[dict], *, word: str = "$skip") -> dict:
        """Return one page of a list, with a link to the next."""
        start = int(got.value(word) or 0)
        end = start + self.page_rows
        answer: dict = {"value": rows[start:end]}
        if end < len(rows):
            query = {**dict(got.query), word: str(end)}
            link = f"{self.url}{got.path}?{'&'.join(f'{name}={quote(value)}' for name, value in query.items())}"
            self.links.add(link)
            answer["nextLink"] = link
        return answer

    def as_link(self, got: Got) -> str:
        return f"{self.url}{got.path}?{'&'.join(f'{name}={quote(value)}' for name, value in got.query)}"


@dataclass
class Deletion:
    """How jobs are deleted: at once by a status, or 202 with some header (or none) and some looks until the end."""

    status: int = 200
    header: str | None = None
    looks: int = 2
    end: str = "Succeeded"
    retry_after: str | None = None
    keeps_job: bool = False
    forgets_operation: bool = False


@dataclass
class Arm(Checked):
    """The Resource Manager. Resources are kept by their path in lower case."""

    subscriptions: list[dict] = field(default_factory=list)
    rows: list[dict] = field(default_factory=list)
    resources: dict[str, dict] = field(default_factory=dict)
    usages: dict[tuple[str, str], list[dict]] = field(default_factory=dict)
    series: dict[tuple[str, str], list[dict]] = field(default_factory=dict)
    images: dict[str, list[dict]] = field(default_factory=dict)
    secrets: dict[str, dict] = field(default_factory=dict)
    deletion: Deletion = field(default_factory=Deletion)
    operations: dict[str, tuple[Deletion, str]] = field(default_factory=dict)
    vanishing: dict[str, int] = field(default_factory=dict)
    cuts_graph: bool = False

    def answer(self, got: Got) -> Answer:
        """Answer one request."""
        refused = self.common(got)
        if refused is not None:
            return refused
        if got.path in self.operations:
            return self._operation(got)
        found = self.route(got, ROUTES)
        if isinstance(found, Answer):
            return found
        route, names = found
        return self._by_route(got, route, names)

    def add(self, path: str, document: dict, kind: str | None = None) -> dict:
        """Keep a resource; it must be legal. Returns it with its id and name."""
        whole = {"id": path, "name": path.rpartition("/")[2], **document}
        if kind is not None:
            _must_be_legal(ARM_KINDS.faults(kind, whole, sent=False))
        self.resources[path.lower()] = whole
        return whole

    def _by_route(self, got: Got, route: Route, names: Mapping[str, str]) -> Answer:
        if route.path == "/subscriptions":
            return self._legal("{object}", self.page(got, self.subscriptions, word="$skiptoken"), "Subscription")
        if route.path.endswith("ResourceGraph/resources"):
            return self._graph(got)
        if route.path.endswith("/usages"):
            where = (names["subscriptionId"], names["location"])
            return self._legal("ListUsagesResult", self.page(got, self.usages.get(where, [])))
        if route.path.endswith("/instanceTypeSeries"):
            return Answer(200, self.page(got, self.series.get((names["subscriptionId"], names["location"]), [])))
        if route.path.endswith("Singularity/images"):
            return Answer(200, self.page(got, self.images.get(names["subscriptionId"], [])))
        return self._resource(got, route)

    def _resource(self, got: Got, route: Route) -> Answer:
        key = unquote(got.path).lower()
        if got.method == "GET" and route.path.rpartition("/")[2] in (
            "jobs",
            "datastores",
            "computes",
            "environments",
            "versions",
        ):
            return self._list(got, key)
        if got.method == "GET":
            if key in self.vanishing:
                self.vanishing[key] -= 1
                if self.vanishing[key] <= 0:
                    self.resources.pop(key, None)
            return Answer(200, self.resources[key]) if key in self.resources else _absent(got)
        if got.method == "PUT":
            return self._put(got, key)
        if got.method == "DELETE":
            return self._delete(got, key)
        if got.body:
            return self.refuse(got, "this takes no body")
        if route.path.endswith("/cancel"):
            return self._cancel(got, key.removesuffix("/cancel"))
        secret = self.secrets.get(key.removesuffix("/listsecrets"))
        return Answer(200, secret) if route.path.endswith("/listSecrets") and secret else _absent(got)

    def _list(self, got: Got, key: str) -> Answer:
        rows = [
            document
            for path, document in self.resources.items()
            if path.startswith(key + "/") and "/" not in path[len(key) + 1 :]
        ]
        kind = got.value("jobType")
        if kind is not None:
            rows = [row for row in rows if row["properties"]["jobType"] == kind]
        archived = {"ArchivedOnly": (True,), "All": (True, False)}.get(got.value("listViewType") or "", (False,))
        rows = [row for row in rows if row["properties"].get("isArchived", False) in archived]
        return Answer(200, self.page(got, rows))

    def _put(self, got: Got, key: str) -> Answer:
        collection = key.rsplit("/", 2)[1]
        name = unquote(got.path).rpartition("/")[2]
        try:
            body = json.loads(got.body)
        except ValueError:
            return self.refuse(got, "the body is not JSON")
        faults = ARM_KINDS.faults(KINDS[collection], body, sent=True)
        if collection != "computes" and not NAME.match(name):
            faults.append(f"{name!r} is no name")
        if faults:
            return self.refuse(got, *faults)
        old = self.resources.get(key)
        document = {"id": unquote(got.path), "name": name, **body}
        if collection == "jobs":
            studio = {"Studio": {"endpoint": f"{self.url}/runs/{name}"}}
            document["properties"] = {**body["properties"], "status": "NotStarted", "services": studio}
        self.resources[key] = document
        return Answer(200 if old else 201, document)

    def _cancel(self, got: Got, key: str) -> Answer:
        job = self.resources.get(key)
        if job is None:
            return _absent(got)
        if job["properties"]["status"] in ("Completed", "Failed", "Canceled"):
            return problem(409, "Conflict", "the run has finished already")
        job["properties"]["status"] = "CancelRequested"
        return Answer(202)

    def _delete(self, got: Got, key: str) -> Answer:
        if key not in self.resources:
            return Answer(204)
        way = self.deletion
        if way.status != 202:
            del self.resources[key]
            return Answer(way.status)
        path = f"{got.path.rpartition('/jobs/')[0]}/operations/{uuid.uuid4()}"
        self.operations[path] = (way, key)
        headers = {way.header: f"{self.url}{path}"} if way.header else {}
        if way.retry_after:
            headers["Retry-After"] = way.retry_after
        if way.header is None:
            self.vanishing[key] = way.looks
        return Answer(202, headers=headers)

    def _operation(self, got: Got) -> Answer:
        way, key = self.operations[got.path]
        if way.forgets_operation:
            self.resources.pop(key, None)
            return _absent(got)
        way.looks -= 1
        if way.looks > 0:
            return Answer(202) if way.header == "Location" else Answer(200, {"status": "InProgress"})
        if not way.keeps_job and way.end == "Succeeded":
            self.resources.pop(key, None)
        if way.header == "Location" and way.end == "Succeeded":
            return Answer(204)
        document: dict = {"status": way.end}
        if way.end != "Succeeded":
            document["error"] = {"code": "JobIsHeld", "message": "somebody holds the job"}
        return Answer(200, document)

    def _graph(self, got: Got) -> Answer:
        try:
            body = json.loads(got.body)
        except ValueError:
            return self.refuse(got, "the body is not JSON")
        faults = ARM_KINDS.faults("QueryRequest", body, sent=True)
        if not faults and not 0 < len(body.get("subscriptions", [])) <= 100:
            faults.append("names none or more than 100 subscriptions")
        rows = [] if faults else self._run(body["query"], body["subscriptions"], faults)
        if faults:
            return self.refuse(got, *faults)
        options = body.get("options", {})
        start = int(options.get("$skipToken", "0"))
        end = start + self.page_rows
        answer = {"totalRecords": len(rows), "count": len(rows[start:end]), "data": rows[start:end]}
        answer["resultTruncated"] = "true" if end < len(rows) else "false"
        if end < len(rows) and not self.cuts_graph:
            answer["$skipToken"] = str(end)
        return self._legal("QueryResponse", answer)

    def _run(self, query: str, subscriptions: list[str], faults: list[str]) -> list[dict]:
        """Run the few steps of the query language that we use."""
        first, *steps = _steps(query)
        rows = [row for row in self.rows if row["subscriptionId"] in subscriptions]
        if first != "resources" or not steps or steps[-1] != "order by id asc":
            faults.append(f"the query does not end ordered by id: {query}")
        for step in steps[:-1]:
            if found := re.fullmatch(r"where (\w+) =~ '((?:[^'\\]|\\.)*)'", step):
                wanted = re.sub(
                    r"\\(.)", lambda escape: {"n": "\n", "t": "\t", "r": "\r"}.get(escape[1], escape[1]), found[2]
                )
                rows = [row for row in rows if str(row.get(found[1], "")).lower() == wanted.lower()]
            elif found := re.fullmatch(r"project (id(?:, \w+)+)", step):
                columns = found[1].split(", ")
                rows = [{name: row.get(name) for name in columns} for row in rows]
            else:
                faults.append(f"the query has a step that is none: {step}")
        return sorted(rows, key=lambda row: row["id"])

    def _legal(self, kind: str, document: dict, of_rows: str | None = None) -> Answer:
        """Answer with a document that the definitions allow."""
        faults = ARM_KINDS.faults(kind, document, sent=False) if kind in ARM_KINDS.kinds else []
        for row in document.get("value", []) if of_rows else []:
            faults += ARM_KINDS.faults(of_rows or "", row, sent=False)
        _must_be_legal(faults)
        return Answer(200, document)


@dataclass
class DataPlane(Checked):
    """Run history and the files behind it. Files are read by a signed address, without any token."""

    details: dict[str, dict] = field(default_factory=dict)
    artifacts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    signature: str = "c2lnbmF0dXJl"
    ignores_ranges: bool = False

    def answer(self, got: Got) -> Answer:
        """Answer one request."""
        if got.path.startswith("/files/"):
            return self._file(got)
        refused = self.common(got)
        if refused is not None:
            return refused
        found = self.route(got, HISTORY)
        if isinstance(found, Answer):
            return found
        route, names = found
        if route.path.endswith("/details"):
            details = self.details.get(names["runId"])
            return self._legal("RunDetails", details) if details is not None else _absent(got)
        if "/artifacts/" in route.path and got.value("path") is None:
            return self.refuse(got, "query path is missing")
        if route.path.endswith("/artifacts/path"):
            return self._artifacts(got, names)
        if route.path.endswith("/artifacts/contentinfo"):
            return self._content(got, names)
        return self.refuse(got, "nothing is answered here")

    def signed(self, path: str, *, expires: str = "2030-01-01T00:00:00Z") -> str:
        """The signed address of a file."""
        return f"{self.url}/files/{quote(path)}?sv=2024-11-04&sp=r&se={quote(expires)}&sig={self.signature}"

    def _artifacts(self, got: Got, names: Mapping[str, str]) -> Answer:
        every = self.artifacts.get((names["experimentName"], names["runId"]))
        if every is None:
            return _absent(got)
        paths = sorted(path for path in every if path.startswith(got.value("path") or ""))
        start = int(got.value("continuationToken") or 0)
        end = start + self.page_rows
        rows = [{"origin": "ExperimentRun", "container": "dcid", "path": path} for path in paths[start:end]]
        for row in rows:
            _must_be_legal(HISTORY_KINDS.faults("Artifact", row, sent=False))
        answer: dict = {"value": rows}
        if end < len(paths):
            answer["continuationToken"] = str(end)
        return Answer(200, answer)

    def _content(self, got: Got, names: Mapping[str, str]) -> Answer:
        path = got.value("path") or ""
        if path not in self.artifacts.get((names["experimentName"], names["runId"]), []):
            return _absent(got)
        return self._legal("ArtifactContentInformation", {"contentUri": self.signed(path), "path": path})

    def _file(self, got: Got) -> Answer:
        path = unquote(got.path.removeprefix("/files/"))
        if "authorization" in got.headers:
            return self.refuse(got, "a token came to a signed address")
        if got.headers.get("accept-encoding") != "identity":
            return self.refuse(got, "a range of a compressed file was asked for")
        if got.value("sig") != self.signature:
            return problem(403, "AuthenticationFailed", "the signature is not good")
        if path not in self.files:
            return problem(404, "BlobNotFound", "no such file")
        content = self.files[path]
        headers = {"ETag": self.etags.get(path, '"0x1"'), "Content-Type": "application/octet-stream"}
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", got.headers.get("range", ""))
        if not asked:
            return self.refuse(got, "a file was asked for without a range")
        if self.ignores_ranges:
            return Answer(200, raw=content, headers=headers)
        start = int(asked[1]) if asked[1] else max(0, len(content) - int(asked[2]))
        end = min(int(asked[2]), len(content) - 1) if asked[1] and asked[2] else len(content) - 1
        if start >= len(content):
            return Answer(416, raw=b"<Error/>", headers={**headers, "Content-Range": f"bytes */{len(content)}"})
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        return Answer(206, raw=content[start : end + 1], headers=headers)

    def _legal(self, kind: str, document: dict) -> Answer:
        faults = HISTORY_KINDS.faults(kind, document, sent=False)
        _must_be_legal(faults)
        return Answer(200, document)


def _must_be_legal(faults: list[str]) -> None:
    """Fail when what we answer ourselves breaks a definition: the test is wrong then."""
    if faults:
        raise AssertionError("\n".join(faults))


def _absent(got: Got) -> Answer:
    return problem(404, "ResourceNotFound", f"nothing is at {got.path}")


def _steps(query: str) -> list[str]:
    """Split a query at the bars that stand outside of quotes."""
    return [step.strip() for step in re.findall(r"(?:'(?:[^'\\]|\\.)*'|[^|'])+", query)]


def _is_uuid(words: str) -> bool:
    try:
        return str(uuid.UUID(words)) == words
    except ValueError:
        return False
