"""The routes of the socket as names: method, path, query words, and what a daemon must know to have them.

Nobody writes a path by hand: the client fills a Route, the daemon matches one.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes, urlencode

from aj.base.noun import dataclass

PROJECT = "aj-project"  # absolute path of the project directory, percent-encoded
CLIENT = "aj-client"  # version of the caller
REQUEST = "aj-request"  # random id of this call, repeated in the answer and in the log
AUTHORIZATION = "authorization"  # `Bearer TOKEN`, of a replica
KEY = "aj-key"  # names one change: the same key and body again is answered, not done again
LAST_EVENT = "last-event-id"  # an event stream goes on after this one

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_CONNECTIONS = 64
IDLE_CONNECTION_S = 60.0
KEEPALIVE_S = 10.0  # a held answer shows a sign of life this often
SILENCE_S = 30.0  # a caller gives up when there was none for this long
CONNECT_S = 2.0
ADMIN_S = 5.0  # first byte of hello, ping and retire: slower means hung


@dataclass(frozen=True)
class Route:
    """One thing that can be asked. `capability` is the word by which a daemon says that it knows it.

    `holds` marks an answer that may take long and then shows signs of life; `keyed` a change that
    carries its key in a header (a submission carries it in its body); `begins` new work, which a
    daemon that is stopping refuses.
    """

    method: str
    pattern: str
    capability: str
    query: tuple[str, ...] = ()
    holds: bool = False
    keyed: bool = False
    begins: bool = False

    @property
    def mutates(self) -> bool:
        return self.method != "GET"

    def path(self, *segments: str, query: Mapping[str, str | int | float | None] | None = None) -> str:
        """Fill in the segments and the query; None in a query means not given."""
        rest = iter(segments)
        parts = [_encoded(next(rest)) if part.startswith("{") else part for part in self.pattern.split("/")]
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return "/".join(parts) + (f"?{urlencode(given)}" if given else "")


def _encoded(segment: str) -> str:
    return quote(segment.encode("utf-8", "surrogateescape"), safe="")


HELLO = Route("GET", "/v1/hello", "admin")
PING = Route("GET", "/v1/ping", "admin")
RETIRE = Route("POST", "/v1/retire", "admin")
HEALTH = Route("GET", "/v1/health", "health")

SUBMIT = Route("POST", "/v1/submissions", "submissions", holds=True, begins=True)
SUBMISSION = Route("GET", "/v1/submissions/{key}", "submissions", ("wait_s", "after"), holds=True)

QUEUE = Route("GET", "/v1/queue", "queue", ("all", "state", "limit"))
QUEUE_RESUME = Route("POST", "/v1/queue/resume", "queue", ("all",), holds=True, keyed=True, begins=True)
TICKET = Route("GET", "/v1/queue/{ticket}", "queue")
TICKET_WAIT = Route("GET", "/v1/queue/{ticket}/wait", "queue", ("timeout_s",), holds=True)
TICKET_CANCEL = Route("POST", "/v1/queue/{ticket}/cancel", "queue", holds=True, keyed=True)
TICKET_RECONCILE = Route("POST", "/v1/queue/{ticket}/reconcile", "queue", holds=True, keyed=True)
TICKET_RETRY = Route("POST", "/v1/queue/{ticket}/retry", "queue", ("force",), holds=True, keyed=True, begins=True)

JOBS = Route("GET", "/v1/jobs", "jobs", ("all", "state", "limit"))
JOBS_HOLD = Route("POST", "/v1/jobs/hold", "hold")
JOBS_SUBMIT = Route("POST", "/v1/jobs", "jobs", holds=True, begins=True)
JOB = Route("GET", "/v1/jobs/{id}", "jobs")
JOB_EVENTS = Route("GET", "/v1/jobs/{id}/events", "jobs")
JOB_LOGS = Route("GET", "/v1/jobs/{id}/logs", "jobs", ("attempt", "rank", "tail", "since"))
JOB_WAIT = Route("GET", "/v1/jobs/{id}/wait", "jobs", ("after", "timeout_s"), holds=True)
JOB_CANCEL = Route("POST", "/v1/jobs/{id}/cancel", "jobs", holds=True, keyed=True)
JOB_TERMINATE = Route("POST", "/v1/jobs/{id}/terminate", "jobs", holds=True, keyed=True)
JOB_RESUBMIT = Route("POST", "/v1/jobs/{id}/resubmit", "jobs", holds=True, keyed=True, begins=True)
JOB_EXEC = Route("POST", "/v1/jobs/{id}/exec", "jobs", holds=True, keyed=True)
JOB_PREEMPT = Route("POST", "/v1/jobs/{id}/preempt", "jobs", holds=True, keyed=True)
JOB_DELETE = Route("DELETE", "/v1/jobs/{id}", "jobs", holds=True, keyed=True)

JOB_CLAIM = Route("GET", "/v1/jobs/{id}/claim", "deployments", ("revision", "timeout_s"), holds=True)

DEPLOYMENTS = Route("GET", "/v1/deployments", "deployments")
DEPLOYMENT_CREATE = Route("POST", "/v1/deployments", "deployments", holds=True, keyed=True, begins=True)
DEPLOYMENT = Route("GET", "/v1/deployments/{name}", "deployments")
DEPLOYMENT_UPGRADE = Route("POST", "/v1/deployments/{name}/upgrade", "deployments", holds=True, keyed=True, begins=True)
DEPLOYMENT_DELETE = Route("POST", "/v1/deployments/{name}/delete", "deployments", holds=True, keyed=True)
DEPLOYMENT_SUBMIT = Route("POST", "/v1/deployments/{name}/jobs", "deployments", holds=True, begins=True)

# What a replica asks, with its token; the executions themselves tell a repeated request from a new one.
WORK_CANDIDATE = Route("GET", "/v1/deployments/{name}/candidate", "workload", ("timeout_s",), holds=True)
WORK_CLAIM = Route("POST", "/v1/deployments/{name}/jobs/{id}/claim", "workload")
WORK_CANCELLATION = Route(
    "GET", "/v1/deployments/{name}/jobs/{id}/cancellation", "workload", ("execution", "timeout_s"), holds=True
)
WORK_OUTCOME = Route("POST", "/v1/deployments/{name}/jobs/{id}/outcome", "workload")
WORK_CLEANUP = Route("POST", "/v1/deployments/{name}/jobs/{id}/cleanup", "workload")

SPEND = Route("GET", "/v1/spend", "spend")
CAP_SET = Route("POST", "/v1/spend/caps", "spend", holds=True, keyed=True)
CAP_CLEAR = Route("POST", "/v1/spend/clear", "spend", holds=True, keyed=True)
COST = Route("GET", "/v1/cost", "spend", ("job", "period_s", "agent", "session", "all"), holds=True)

CODE_PRUNE = Route("POST", "/v1/code/prune", "code", holds=True, keyed=True)

_PLACE = ("context", "namespace", "kubeconfig")
K8S_STATUS = Route("GET", "/v1/k8s/status", "k8s", (*_PLACE, "check"), holds=True)
K8S_JOBS = Route("GET", "/v1/k8s/jobs", "k8s", (*_PLACE, "job"), holds=True)
K8S_QUEUES = Route("GET", "/v1/k8s/queues", "k8s", _PLACE, holds=True)
K8S_PODS = Route("GET", "/v1/k8s/pods", "k8s", (*_PLACE, "job"), holds=True)
K8S_EVENTS = Route("GET", "/v1/k8s/events", "k8s", (*_PLACE, "name"), holds=True)
K8S_LOGS = Route(
    "GET", "/v1/k8s/logs", "k8s", (*_PLACE, "name", "rank", "container", "previous", "tail", "cursor"), holds=True
)
K8S_DELETE = Route("DELETE", "/v1/k8s/jobs/{name}", "k8s", _PLACE, holds=True, keyed=True)
K8S_REFRESH = Route("POST", "/v1/k8s/jobs/{name}/refresh", "k8s", (*_PLACE, "hours"), holds=True, keyed=True)

WATCHES = Route("GET", "/v1/watches", "watches", ("all",))
WATCH_ADD = Route("POST", "/v1/watches", "watches", holds=True, keyed=True)
WATCH_REMOVE = Route("DELETE", "/v1/watches/{id}", "watches", holds=True, keyed=True)

JOURNAL = Route("GET", "/v1/journal", "journal", ("all", "limit"))
EVENTS = Route("GET", "/v1/events", "events", ("project", "timeout_s"))

_FRESH = ("subscription", "refresh")
_QUERY = ("state", "experiment", "kind", "tag", "since_s", "archived", "limit")
AUTH = Route("GET", "/v1/auth", "azure", holds=True)
QUOTA = Route("GET", "/v1/quota", "azure", (*_FRESH, "service", "every", "full"), holds=True)
SKUS = Route("GET", "/v1/skus", "azure", (*_FRESH, "every"), holds=True)
IMAGES = Route("GET", "/v1/images", "azure", (*_FRESH, "text"), holds=True)
WORKSPACES = Route("GET", "/v1/workspaces", "azure", _FRESH, holds=True)
WORKSPACE = Route("GET", "/v1/workspaces/{ws}", "azure", holds=True)
DATASTORES = Route("GET", "/v1/workspaces/{ws}/datastores", "azure", _FRESH, holds=True)
DATASTORE = Route("GET", "/v1/workspaces/{ws}/datastores/{name}", "azure", holds=True)
ENVIRONMENTS = Route("GET", "/v1/workspaces/{ws}/environments", "azure", _FRESH, holds=True)
ENVIRONMENT = Route("GET", "/v1/workspaces/{ws}/environments/{name}", "azure", ("limit",), holds=True)
ACCOUNTS = Route("GET", "/v1/storage-accounts", "azure", _FRESH, holds=True)
IDENTITIES = Route("GET", "/v1/identities", "azure", _FRESH, holds=True)
CLOUD_JOBS = Route("GET", "/v1/workspaces/{ws}/jobs", "azure", _QUERY, holds=True)
CLOUD_STATS = Route("GET", "/v1/workspaces/{ws}/stats", "azure", _QUERY, holds=True)
CLOUD_JOB = Route("GET", "/v1/workspaces/{ws}/jobs/{name}", "azure", ("why",), holds=True)
CLOUD_CANCEL = Route("POST", "/v1/workspaces/{ws}/jobs/{name}/cancel", "azure", holds=True, keyed=True)
CLOUD_DELETE = Route("DELETE", "/v1/workspaces/{ws}/jobs/{name}", "azure", holds=True, keyed=True)
CLOUD_PRUNE = Route("POST", "/v1/workspaces/{ws}/code/prune", "azure", holds=True, keyed=True)
CLOUD_FILES = Route("GET", "/v1/workspaces/{ws}/jobs/{name}/files", "azure", ("sizes",), holds=True)
CLOUD_LOG = Route("GET", "/v1/workspaces/{ws}/jobs/{name}/logs", "azure", ("file", "cursor", "tail"), holds=True)

BUCKETS = Route("GET", "/v1/buckets", "buckets", ("credential",), holds=True)
BUCKET_MAKE = Route("POST", "/v1/buckets", "buckets", holds=True, keyed=True)
BUCKET = Route("GET", "/v1/buckets/{name}", "buckets", ("credential", "prefix", "cursor", "limit"), holds=True)
BUCKET_DELETE = Route("DELETE", "/v1/buckets/{name}", "buckets", ("credential",), holds=True, keyed=True)
TRANSFER = Route("POST", "/v1/transfers", "buckets", holds=True, keyed=True, begins=True)
TRANSFER_LOOK = Route("GET", "/v1/transfers/{id}", "buckets", ("after", "timeout_s"), holds=True)
TRANSFER_STOP = Route("DELETE", "/v1/transfers/{id}", "buckets", holds=True, keyed=True)
CREDENTIALS = Route("GET", "/v1/credentials", "buckets")
CREDENTIAL_SAVE = Route("POST", "/v1/credentials", "buckets", holds=True, keyed=True)
CREDENTIAL_DELETE = Route("DELETE", "/v1/credentials/{name}", "buckets", holds=True, keyed=True)
SECRETS = Route("GET", "/v1/secrets", "buckets")
SECRET_SAVE = Route("POST", "/v1/secrets", "buckets", holds=True, keyed=True)
SECRET_DELETE = Route("DELETE", "/v1/secrets/{name}", "buckets", holds=True, keyed=True)

ALL: tuple[Route, ...] = tuple(value for value in dict(globals()).values() if isinstance(value, Route))
CAPABILITIES: tuple[str, ...] = tuple(sorted({route.capability for route in ALL}))

# The noun of a path, for the words of a 404.
NOUNS = {
    "submissions": "submission",
    "queue": "ticket",
    "jobs": "job",
    "workspaces": "job",
    "deployments": "deployment",
    "buckets": "bucket",
    "transfers": "transfer",
    "credentials": "credential",
    "secrets": "secret",
}


@dataclass(frozen=True)
class Match:
    """What a path means: its route, and the decoded segments in order."""

    route: Route
    segments: tuple[str, ...]


class NoSuchPath(Exception):
    """No route has this path. `noun` is what the path seems to be about."""

    def __init__(self, noun: str | None) -> None:
        super().__init__(noun)
        self.noun = noun


class NoSuchMethod(Exception):
    """The path exists, but not with this method. `allowed` are those that do."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__(", ".join(allowed))
        self.allowed = allowed


def match(method: str, path: str) -> Match:
    """Find the route of a raw path (without its query). Raises NoSuchPath or NoSuchMethod."""
    parts = path.split("/")
    fitting = [(route, found) for route in ALL if (found := _segments(route.pattern, parts)) is not None]
    if not fitting:
        raise NoSuchPath(NOUNS.get(parts[2]) if len(parts) > 2 and parts[1] == "v1" else None)
    # A word of the pattern itself wins over a segment: `queue/resume` is no ticket.
    fewest = min(len(found) for _, found in fitting)
    nearest = [(route, found) for route, found in fitting if len(found) == fewest]
    for route, found in nearest:
        if route.method == method:
            return Match(route, tuple(_decoded(part, route) for part in found))
    raise NoSuchMethod(tuple(route.method for route, _ in nearest))


def _segments(pattern: str, parts: list[str]) -> list[str] | None:
    """Return the raw variable segments when the parts fit the pattern."""
    words = pattern.split("/")
    if len(words) != len(parts):
        return None
    if any(word != part for word, part in zip(words, parts) if not word.startswith("{")):
        return None
    return [part for word, part in zip(words, parts) if word.startswith("{")]


def _decoded(segment: str, route: Route) -> str:
    """Decode one segment, once. A separator, NUL or nothing in it can name nothing."""
    noun = NOUNS.get(route.pattern.split("/")[2])
    try:
        word = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise NoSuchPath(noun) from None
    if not word or "/" in word or "\0" in word:
        raise NoSuchPath(noun)
    return word
