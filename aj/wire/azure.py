"""What crosses the socket about Azure: who is signed in, what there is, and the jobs of workspaces."""

from __future__ import annotations

from aj.base.noun import dataclass
from aj.model.cloudjob import CloudJob
from aj.model.tally import Tally

HERE = "-"  # the workspace of the settings, where a path names one
EVERY = "*"  # every workspace that this user sees


# A place on a cluster is `volcano://context/namespace`; a segment of a path holds no slash, and this sign stands in
# no name of a workspace and in no quoted part of a place.
SLASH = "|"


def segment(place: str) -> str:
    """Write the word for a workspace or for a place on a cluster as one segment of a path."""
    return place.replace("/", SLASH)


def place(segment: str) -> str:
    """Read what `segment` wrote."""
    return segment.replace(SLASH, "/")


@dataclass(frozen=True)
class FailedPart:
    """A subscription, region or workspace that gave no answer, and why."""

    part: str
    message: str
    code: str = ""


@dataclass(frozen=True)
class Told:
    """When something was told. `is_stale` when it is older than it should be and a new answer is being fetched,
    or could not be: then `problem` says why.
    """

    as_of: str
    age_s: float
    is_stale: bool = False
    problem: str | None = None
    failures: tuple[FailedPart, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenFacts:
    """A token that is there for one scope, or why it is not; never the token itself."""

    scope: str
    source: str | None = None
    expires_at: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class SignIn:
    """Who is signed in."""

    user: str | None
    object_id: str | None
    tenant: str | None
    source: str
    cloud: str
    subscription: str | None
    workspace: str | None
    tokens: tuple[TokenFacts, ...]


@dataclass(frozen=True)
class QuotaRow:
    """How much of something there is. A limit of None means that there is none; then None are free, too.

    `kind` is `tier` (of a cluster, for everybody), `user` (of a cluster, for each user), `usage` (of a
    subscription) or `compute` (nodes of a workspace's compute). The user's figures stand beside a tier's.
    """

    kind: str
    service: str
    place: str
    subscription: str
    group: str | None = None
    region: str | None = None
    series: str | None = None
    label: str | None = None
    vendor: str | None = None
    accelerator: str | None = None
    gpu_memory_gb: int | None = None
    tier: str | None = None
    unit: str = ""
    limit: int | None = None
    used: int | None = None
    free: int | None = None
    has_user_limit: bool = False
    user_limit: int | None = None
    user_used: int | None = None
    user_free: int | None = None
    problem: str | None = None


@dataclass(frozen=True)
class QuotaList:
    """Rows of quota; `left_out` counts those that are of no use to a job."""

    rows: tuple[QuotaRow, ...]
    told: Told
    left_out: int = 0


@dataclass(frozen=True)
class SkuRow:
    """One type of machine in one region. `sku` asks for a node of it in a template; `clusters` have quota for it."""

    name: str
    sku: str
    series: str
    region: str
    vendor: str | None
    accelerator: str | None
    gpus: int
    gpu_memory_gb: int | None
    cores: int
    memory_gib: float
    scratch_gib: int | None
    nvlink: bool
    infiniband: bool
    clusters: tuple[str, ...] = ()


@dataclass(frozen=True)
class SkuList:
    """Types of machines; `left_out` counts those for which no cluster has any quota."""

    rows: tuple[SkuRow, ...]
    told: Told
    left_out: int = 0


@dataclass(frozen=True)
class ImageRow:
    """An image of the service's own, and every name it has."""

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ImageList:
    """Images."""

    rows: tuple[ImageRow, ...]
    told: Told


@dataclass(frozen=True)
class CloudJobList:
    """Jobs of one workspace or of all, newest first, of `read` that were looked at.

    `truncated` when there may be more: `stopped` says why.
    """

    jobs: tuple[CloudJob, ...]
    workspace: str | None
    read: int
    truncated: bool = False
    stopped: str | None = None
    failures: tuple[FailedPart, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class CloudJobAnswer:
    """One job. `was_final` when it had ended before it was asked to end, or was gone before it was deleted.

    `reasons` are what keeps it from running, the first obstacle first, when that was asked. `by_hand` is a line that
    asks the same without us, where there is one.
    """

    job: CloudJob
    was_final: bool = False
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    by_hand: str | None = None


@dataclass(frozen=True)
class CloudStats:
    """Totals over the jobs of a workspace, `read` of them."""

    tally: Tally
    workspace: str | None
    read: int
    truncated: bool = False
    stopped: str | None = None


@dataclass(frozen=True)
class LogFile:
    """A log file of a run. `size_bytes` is None when nobody was asked."""

    path: str
    size_bytes: int | None = None


@dataclass(frozen=True)
class LogFiles:
    """The log files of a run, what a user wants first, and where its job stands."""

    files: tuple[LogFile, ...]
    job: CloudJob


@dataclass(frozen=True)
class FilePage:
    """The next bytes of a log file, and where to go on; `was_reset` when the file was replaced."""

    data: bytes
    cursor: str
    was_reset: bool = False


@dataclass(frozen=True)
class JobQuery:
    """Which jobs of a workspace. `states` are our words or the service's; a limit of 0 means no other than
    that of the rows that are looked at. A tag is `name` or `name:value`.
    """

    states: tuple[str, ...] = ()
    experiment: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
    since_s: float | None = None
    archived: bool = False
    limit: int = 30


@dataclass(frozen=True)
class InventoryQuery:
    """What is wanted of what there is. `every` shows what is 0 or of no use just now, `full` what never is."""

    subscription: str | None = None
    refresh: bool = False
    every: bool = False
    full: bool = False
    services: tuple[str, ...] = ("sing", "aml")
    text: str | None = None
