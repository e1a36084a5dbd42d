"""The engine as the daemon sees it, as one list: each route calls one of these and nothing else.

The real one is `aj.engine.engine.Engine`; a test may have a small one of its own.
Times are seconds; `last_activity` is by the monotonic clock. A wait returns what stands at the end of
its time. Every method raises the errors of `aj.base.errors`, which cross the socket as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aj.base.paths import Project
from aj.model.claim import Bearer, Candidate, Ending, SelectedJob
from aj.model.state import JobState
from aj.model.ticket import TicketState
from aj.wire.azure import (
    CloudJobAnswer,
    CloudJobList,
    CloudStats,
    FilePage,
    ImageList,
    InventoryQuery,
    JobQuery,
    LogFiles,
    QuotaList,
    SignIn,
    SkuList,
)
from aj.wire.bucket import (
    BucketList,
    CredentialList,
    MakeBucket,
    Objects,
    SaveCredential,
    SaveSecret,
    SecretList,
    Transfer,
    TransferAnswer,
)
from aj.wire.deployment import ClaimAnswer, Create, DeploymentAnswer, DeploymentList, Targeting, Upgrade
from aj.wire.kube import ClusterStatus, EventList, GangList, JobRemoved, PodList, PodLog, QueueRows, Refreshed, Where
from aj.wire.messages import (
    Busy,
    Done,
    Exec,
    ExecPlan,
    JobAnswer,
    JobList,
    Notice,
    ProjectQueue,
    Prune,
    Pruned,
    Submission,
    TicketAnswer,
    TicketList,
)
from aj.wire.resources import (
    AccountList,
    DatastoreList,
    DatastoreRow,
    EnvironmentAnswer,
    EnvironmentList,
    IdentityList,
    WorkspaceAnswer,
    WorkspaceList,
)
from aj.wire.spend import CapDone, ClearCap, CostAnswer, CostQuery, SetCap, SpendAnswer
from aj.wire.watch import WatchDone, WatchList, WatchWish


class Subscription(Protocol):
    """One reader of the events."""

    @property
    def is_closed(self) -> bool:
        """Whether no further event will come."""

    def next(self, timeout_s: float) -> Notice | None:
        """The next event, or None when the time was over without one."""

    def close(self) -> None:
        """Stop reading."""


class Hub(Protocol):
    """Where events come out."""

    def subscribe(self, project_key: str | None, after: int | None) -> Subscription:
        """Read from now on, or from the event after number `after` as far as it is still known."""


class Jobs(Protocol):
    """The jobs that the engine drives."""

    def list(self, project_key: str | None, states: Sequence[JobState], limit: int) -> JobList: ...

    def show(self, job_id: str) -> JobAnswer: ...

    def wait(self, job_id: str, after_event: int, timeout_s: float) -> JobAnswer: ...

    def terminate(self, job_id: str, grace_s: float | None) -> JobAnswer: ...

    def resubmit(
        self, job_id: str, when_clean: bool, start_timeout_s: float | None, refresh_image: bool = False
    ) -> JobAnswer: ...

    def preempt(self, job_id: str, can_restart: bool) -> JobAnswer: ...

    def hold(self, lease_s: float, stop: bool) -> int: ...

    def exec_plan(self, job_id: str, asked: Exec) -> ExecPlan: ...

    def delete(self, job_id: str) -> Done: ...


class Deployments(Protocol):
    """Long-running programs that take jobs, and what their replicas ask."""

    def list(self) -> DeploymentList: ...

    def show(self, name: str) -> DeploymentAnswer: ...

    def create(self, asked: Create) -> DeploymentAnswer: ...

    def upgrade(self, name: str, asked: Upgrade) -> DeploymentAnswer: ...

    def delete(self, name: str, force: bool) -> Done: ...

    def submit(self, name: str, project: Project | None, asked: Targeting) -> JobAnswer: ...

    def observe(self, job_id: str, revision: int, wait_s: float) -> ClaimAnswer: ...

    def bearer(self, token: str) -> Bearer: ...

    def candidate(self, who: Bearer, wait_s: float) -> Candidate | None: ...

    def claim(
        self, who: Bearer, job_id: str, execution_id: str, revision: int, previous: str | None
    ) -> SelectedJob: ...

    def cancellation(self, who: Bearer, job_id: str, execution_id: str, wait_s: float) -> bool: ...

    def outcome(self, who: Bearer, job_id: str, execution_id: str, said: Ending, message: str | None) -> Done: ...

    def cleanup(self, who: Bearer, job_id: str, execution_id: str) -> Done: ...


class Elsewhere(Protocol):
    """Jobs of workspaces or clusters, on behalf of a project. A workspace is one word: see `aj.engine.cloud`.

    A namespace of a cluster is written as a handle without a name: `volcano://context/namespace`.
    """

    def jobs(self, project: Project | None, workspace: str, query: JobQuery) -> CloudJobList: ...

    def stats(self, project: Project | None, workspace: str, query: JobQuery) -> CloudStats: ...

    def job(self, project: Project | None, workspace: str, name: str, *, why: bool = False) -> CloudJobAnswer: ...

    def cancel(self, project: Project | None, workspace: str, name: str) -> CloudJobAnswer: ...

    def delete(self, project: Project | None, workspace: str, name: str) -> Done: ...

    def files(self, project: Project | None, workspace: str, name: str, *, sizes: bool) -> LogFiles: ...

    def log(
        self, project: Project | None, workspace: str, name: str, path: str, cursor: str | None, tail: int | None
    ) -> FilePage: ...


class Cloud(Protocol):
    """Azure, on behalf of a project. A workspace is one word: see `aj.engine.cloud`."""

    def sign_in(self, project: Project | None) -> SignIn: ...

    def quota(self, project: Project | None, query: InventoryQuery) -> QuotaList: ...

    def skus(self, project: Project | None, query: InventoryQuery) -> SkuList: ...

    def images(self, project: Project | None, query: InventoryQuery) -> ImageList: ...

    def workspaces(self, project: Project | None, query: InventoryQuery) -> WorkspaceList: ...

    def workspace(self, project: Project | None, word: str) -> WorkspaceAnswer: ...

    def datastores(self, project: Project | None, workspace: str, query: InventoryQuery) -> DatastoreList: ...

    def datastore(self, project: Project | None, workspace: str, name: str) -> DatastoreRow: ...

    def environments(self, project: Project | None, workspace: str, query: InventoryQuery) -> EnvironmentList: ...

    def environment(self, project: Project | None, workspace: str, name: str, *, limit: int) -> EnvironmentAnswer: ...

    def accounts(self, project: Project | None, query: InventoryQuery) -> AccountList: ...

    def identities(self, project: Project | None, query: InventoryQuery) -> IdentityList: ...


class KubeLooks(Protocol):
    """Clusters looked at by hand."""

    def status(self, where: Where, *, check: bool) -> ClusterStatus: ...

    def jobs(self, where: Where, word: str | None) -> GangList: ...

    def queues(self, where: Where) -> QueueRows: ...

    def pods(self, where: Where, word: str | None) -> PodList: ...

    def events(self, where: Where, word: str) -> EventList: ...

    def log(
        self,
        where: Where,
        word: str,
        *,
        rank: int | None,
        container: str | None,
        previous: bool,
        tail: int | None,
        cursor: str | None,
    ) -> PodLog: ...

    def delete(self, where: Where, word: str) -> JobRemoved: ...

    def refresh(self, where: Where, word: str, hours: float | None) -> Refreshed: ...


class Watches(Protocol):
    """Jobs of which somebody wants to hear when they move."""

    def listing(self, project: str | None) -> WatchList: ...

    def add(self, project: str, folder: str | None, wish: WatchWish) -> WatchDone: ...

    def remove(self, project: str, job_id: str) -> WatchDone: ...


class Spend(Protocol):
    """What is spent, and caps on it."""

    def show(self) -> SpendAnswer: ...

    def set_cap(self, asked: SetCap) -> CapDone: ...

    def clear_caps(self, asked: ClearCap) -> CapDone: ...

    def cost(self, asked: CostQuery) -> CostAnswer: ...


class Buckets(Protocol):
    """Buckets, transfers, credentials and secrets."""

    def listing(self, credential: str | None) -> BucketList: ...

    def make(self, asked: MakeBucket) -> Done: ...

    def objects(self, bucket: str, credential: str | None, prefix: str, cursor: str | None, limit: int) -> Objects: ...

    def delete(self, bucket: str, credential: str | None) -> Done: ...

    def begin(self, asked: Transfer) -> TransferAnswer: ...

    def follow(self, name: str, after: int, timeout_s: float) -> TransferAnswer: ...

    def stop(self, name: str) -> TransferAnswer: ...

    def credentials(self) -> CredentialList: ...

    def save_credential(self, asked: SaveCredential) -> Done: ...

    def delete_credential(self, name: str) -> Done: ...

    def secrets(self) -> SecretList: ...

    def save_secret(self, asked: SaveSecret) -> Done: ...

    def delete_secret(self, name: str) -> Done: ...


class Engine(Protocol):
    """Everything that the daemon may ask."""

    @property
    def buckets(self) -> Buckets: ...

    @property
    def jobs(self) -> Jobs: ...

    @property
    def hub(self) -> Hub: ...

    @property
    def cloud(self) -> Cloud: ...

    def jobs_at(self, workspace: str) -> Elsewhere: ...

    @property
    def deployments(self) -> Deployments: ...

    @property
    def watches(self) -> Watches: ...

    @property
    def spend(self) -> Spend: ...

    @property
    def k8s(self) -> KubeLooks: ...

    def start(self) -> None: ...

    def begin_drain(self) -> None: ...

    def drain(self, timeout_s: float | None) -> bool: ...

    def stop(self) -> None: ...

    def busy(self) -> Busy: ...

    def projects(self) -> Sequence[ProjectQueue]: ...

    def last_activity(self) -> float: ...

    def submit(self, project: Project | None, submission: Submission) -> TicketAnswer: ...

    def submission(
        self, project: Project | None, key: str, wait_s: float, after: int | None = None
    ) -> TicketAnswer: ...

    def queue_list(
        self, project: Project | None, all_projects: bool, states: Sequence[TicketState], limit: int
    ) -> TicketList: ...

    def queue_show(self, project: Project | None, ticket: str) -> TicketAnswer: ...

    def queue_wait(self, project: Project | None, ticket: str, timeout_s: float) -> TicketAnswer: ...

    def queue_cancel(self, project: Project | None, ticket: str) -> TicketAnswer: ...

    def queue_retry(self, project: Project | None, ticket: str, force: bool) -> TicketAnswer: ...

    def queue_reconcile(self, project: Project | None, ticket: str) -> TicketAnswer: ...

    def queue_resume(self, project: Project | None) -> Done: ...

    def code_prune(self, keep_s: float, dry_run: bool) -> Pruned: ...

    def cloud_code_prune(self, project: Project | None, workspace: str, asked: Prune) -> Pruned: ...
