"""Azure as the daemon asks it: each question on behalf of a project, by that project's settings.

A workspace is named by one word: `-` for that of the settings, a name, or its coordinates with colons
between them, behind the tenant when there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Set
from dataclasses import replace

from aj.azure import leftovers
from aj.azure.arm import Session, Workspace
from aj.azure.delivery import Delivery
from aj.azure.workplace import Places, Wish
from aj.base.clock import Clock
from aj.base.errors import UserError
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.engine import cloudjobs, identity, images, quota, resources, skus
from aj.engine.cloudlogs import CloudLogs
from aj.engine.kept import Shelf
from aj.engine.visit import Visit
from aj.model.tally import NOBODY
from aj.store import config
from aj.store.config import Config
from aj.store.layout import Layout
from aj.wire.azure import (
    EVERY,
    HERE,
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
from aj.wire.messages import Archive, Done, Prune, Pruned
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

REMEMBERED_S = 600.0  # a workspace that was found by its name is not looked for again so soon
Open = Callable[[Config, str | None], Session]


class Cloud:
    """What can be asked of Azure. Safe between threads. `open_session` opens one by settings, in a tenant."""

    def __init__(self, open_session: Open, layout: Layout, settings: Settings, clock: Clock) -> None:
        self._open = open_session
        self._layout = layout
        self._settings = settings
        self._clock = clock
        self._shelf = Shelf(layout.answers / "quota", clock)
        self._logs = CloudLogs()
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str | None, Wish], tuple[float, Workspace]] = {}

    # What there is

    def sign_in(self, project: Project | None) -> SignIn:
        """Tell who is signed in. Raises AuthError when nobody is."""
        return identity.status(self._visit(project), self._settings.get("AZURE_SUBSCRIPTION_ID"))

    def quota(self, project: Project | None, query: InventoryQuery) -> QuotaList:
        """List quota. Raises AuthError, RemoteError when no part could be read."""
        return quota.listing(self._visit(project, query), query)

    def skus(self, project: Project | None, query: InventoryQuery) -> SkuList:
        """List types of machines. Raises as `quota`."""
        return skus.listing(self._visit(project, query), every=query.every)

    def images(self, project: Project | None, query: InventoryQuery) -> ImageList:
        """List images of the service's own. Raises as `quota`."""
        return images.listing(self._visit(project, query), text=query.text)

    # Jobs of a workspace

    def jobs(self, project: Project | None, workspace: str, query: JobQuery) -> CloudJobList:
        """List jobs, newest first. Raises UserError, NotFound without such a workspace."""
        if workspace == EVERY:
            visit = self._visit(project)
            _, subscriptions = visit.places()
            return cloudjobs.listing_of_all(visit.session, subscriptions, query)
        return cloudjobs.listing(*self._at(project, workspace), query)

    def stats(self, project: Project | None, workspace: str, query: JobQuery) -> CloudStats:
        """Count jobs. Raises as `jobs`."""
        found = cloudjobs.stats(*self._at(project, workspace), query)
        seen = (part.name for part in found.tally.groups.get("experiment", ()) if part.name != NOBODY)
        resources.remember(self._layout, self._clock, "experiments", seen)
        return found

    def job(self, project: Project | None, workspace: str, name: str, *, why: bool = False) -> CloudJobAnswer:
        """Return one job. Raises NotFound, UserError when asked why it does not run: nobody there tells."""
        if why:
            raise UserError(f"Azure does not tell what keeps {name}", hint=f"`aj status {name}`", code="not-told")
        return cloudjobs.show(*self._at(project, workspace), name)

    def cancel(self, project: Project | None, workspace: str, name: str) -> CloudJobAnswer:
        """Ask a job to end. Raises NotFound, Refused, OutcomeUnknown."""
        return cloudjobs.cancel(*self._at(project, workspace), name)

    def delete(self, project: Project | None, workspace: str, name: str) -> Done:
        """Delete a job that has ended. Raises Refused, RemoteError, OutcomeUnknown."""
        return Done(cloudjobs.delete(*self._at(project, workspace), name))

    def files(self, project: Project | None, workspace: str, name: str, *, sizes: bool) -> LogFiles:
        """List the log files of a job. Raises NotFound."""
        return self._logs.files(*self._at(project, workspace), name, sizes=sizes)

    def log(
        self, project: Project | None, workspace: str, name: str, path: str, cursor: str | None, tail: int | None
    ) -> FilePage:
        """Read the next page of a log file. Raises NotFound, UserError."""
        return self._logs.page(*self._at(project, workspace), name, path, cursor=cursor, tail=tail)

    # Resources

    def workspaces(self, project: Project | None, query: InventoryQuery) -> WorkspaceList:
        """List workspaces. Raises AuthError, RemoteError."""
        return resources.workspace_list(self._visit(project, query))

    def workspace(self, project: Project | None, word: str) -> WorkspaceAnswer:
        """Read one workspace. Raises NotFound."""
        current = self._visit(project).chosen.workspace.workspace
        return resources.workspace_show(*self._at(project, word), current)

    def datastores(self, project: Project | None, workspace: str, query: InventoryQuery) -> DatastoreList:
        """List datastores. Raises as `jobs`."""
        return resources.datastore_list(*self._visit_at(project, workspace, query))

    def datastore(self, project: Project | None, workspace: str, name: str) -> DatastoreRow:
        """Read one datastore. Raises NotFound."""
        return resources.datastore_show(*self._at(project, workspace), name)

    def environments(self, project: Project | None, workspace: str, query: InventoryQuery) -> EnvironmentList:
        """List environments. Raises as `jobs`."""
        return resources.environment_list(*self._visit_at(project, workspace, query))

    def environment(self, project: Project | None, workspace: str, name: str, *, limit: int) -> EnvironmentAnswer:
        """Read the versions of one environment. Raises NotFound."""
        return resources.environment_show(*self._at(project, workspace), name, limit=limit)

    def accounts(self, project: Project | None, query: InventoryQuery) -> AccountList:
        """List storage accounts. Raises AuthError, RemoteError."""
        return resources.account_list(self._visit(project, query))

    def identities(self, project: Project | None, query: InventoryQuery) -> IdentityList:
        """List user-assigned identities. Raises AuthError, RemoteError."""
        return resources.identity_list(self._visit(project, query))

    # Code

    def prune_code(
        self, project: Project | None, workspace: str, asked: Prune, needed: Callable[[], Set[str]]
    ) -> Pruned:
        """Remove old code of ours from the container of a workspace. Raises as `jobs`, Refused without the right."""
        session, place = self._at(project, workspace)
        may_use_key = bool(config.read(self._layout, None, self._settings).value("storage.allow_account_key"))
        delivery = Delivery(self._settings, may_use_key)
        before = self._clock.now() - asked.keep_s
        found = leftovers.prune(session, place, delivery, needed=needed, before=before, dry_run=asked.dry_run)
        return Pruned(tuple(Archive(leftovers.sha256_of(kept) or kept.name, kept.size_bytes) for kept in found))

    # Where

    def _visit(
        self, project: Project | None, query: InventoryQuery | None = None, *, tenant: str | None = None
    ) -> Visit:
        chosen, asked = config.read(self._layout, project), query or InventoryQuery()
        session = self._open(chosen, tenant)
        return Visit(session, chosen, self._layout, self._shelf, asked.subscription, asked.refresh)

    def _visit_at(self, project: Project | None, word: str, query: InventoryQuery) -> tuple[Visit, Workspace]:
        session, workspace = self._at(project, word)
        return replace(self._visit(project, query), session=session), workspace

    def _at(self, project: Project | None, word: str) -> tuple[Session, Workspace]:
        """Return a workspace and a session for it. Raises UserError, NotFound."""
        tenant, wish = wished(word)
        visit = self._visit(project, tenant=tenant)
        own = visit.chosen.workspace
        if word == HERE and own.name is None:
            raise UserError(
                "no workspace is chosen",
                hint="`--ws NAME`, or `aj config set workspace.name NAME`",
                code="no-workspace-chosen",
            )
        if word == HERE or (wish.name and own.name and wish.name.lower() == own.name.lower() and not wish.group):
            wish = own
        return visit.session, wish.workspace or self._named(visit.session, wish)

    def _named(self, session: Session, wish: Wish) -> Workspace:
        """Find a workspace by its name, unless it was found a moment ago."""
        key = (session.cloud.name, session.tenant, wish)
        now = self._clock.monotonic()
        with self._lock:
            known = self._found.get(key)
        if known is not None and now - known[0] < REMEMBERED_S:
            return known[1]
        workspace = Places(session).named(wish)
        with self._lock:
            self._found[key] = (now, workspace)
        return workspace


def wished(word: str) -> tuple[str | None, Wish]:
    """Read the word for a workspace: the tenant, and what is known. Raises UserError."""
    if word == HERE:
        return None, Wish()
    *rest, name = word.split(":")
    if not all(rest) or not name or len(rest) not in (0, 2, 3):
        raise UserError(f"`{word}` is no workspace", hint="NAME, or SUBSCRIPTION/GROUP/NAME", code="bad-workspace")
    if not rest:
        return None, Wish(name)
    tenant = rest[0] if len(rest) == 3 else None
    return tenant, Wish(name, rest[-2], rest[-1])
