"""The engine: everything the daemon can be asked for, in one place.

Projects are opened at their first request: from then on this daemon owns their queue, takes up what
was left of it, and works on it. Nothing here decides how a submission runs; see `submit` and `worker`.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from aj.base.clock import Clock
from aj.base.errors import AjError, DaemonError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.base.paths import NO_PROJECT, Folders, Project
from aj.base.settings import Settings
from aj.engine import reconcile, records, retry, submit
from aj.engine.desk import Desk, bare
from aj.engine.hub import Hub
from aj.engine.means import Entrance, Jobs, Means, Packed, Places
from aj.engine.steps import Steps
from aj.engine.submit import Accepted
from aj.engine.upkeep import Upkeep
from aj.engine.worker import Worker, start_direct
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import archives, journal, lock, queue, tickets
from aj.store.archives import Archives
from aj.store.layout import Layout
from aj.store.runtime import Place
from aj.wire.messages import Archive, Busy, Done, ProjectQueue, Prune, Pruned, Submission, TicketAnswer, TicketList

if TYPE_CHECKING:  # what asks a cloud is imported with the first question
    from aj.engine.cloud import Cloud
    from aj.engine.deployments import Deployments
    from aj.engine.kubejobs import KubeJobs
    from aj.engine.kubelooks import KubeLooks
    from aj.engine.spend import Spend
    from aj.engine.storage import Storages
    from aj.engine.watches import Watches

J = TypeVar("J", bound=Jobs)
LOG = logging.getLogger("aj.engine")
BETWEEN = "://"  # in a word that names a place of a service, as a handle does, and no workspace


@dataclass(frozen=True)
class _Opened:
    """A project that this daemon owns, and the loop that works on its queue."""

    desk: Desk
    worker: Worker


class Engine(Generic[J]):
    """What the routes call. Safe between threads. Every error is one of `aj.base.errors`.

    `jobs` makes the side that drives jobs of our own; it gets the hub to publish on.
    """

    def __init__(
        self,
        settings: Settings,
        folders: Folders,
        clock: Clock,
        jobs: Callable[[Hub], J],
        *,
        places: Places,
        pack: Callable[[JobSpec], Packed],
        keep_final: int = queue.KEEP_FINAL,
        cloud: Callable[[], Cloud] = lambda: _none("speaks to no cloud"),
        clusters: Callable[[], KubeJobs] = lambda: _none("speaks to no cluster"),
        looks: Callable[[], KubeLooks] = lambda: _none("speaks to no cluster"),
        deployments: Callable[[J, Callable[[Project | None], object]], Deployments] = lambda *_: _none(
            "runs no deployments", "no-deployments"
        ),
        watches: Callable[[Engine[J]], Watches] = lambda _: _none("watches no jobs", "no-watches"),
        spend: Callable[[J], Spend] = lambda _: _none("keeps no account", "no-account"),
        storages: Callable[[], Storages] = lambda: _none("knows no buckets", "no-buckets"),
        steps: Steps | None = None,
        upkeep: Upkeep | None = None,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.hub = Hub()
        self.jobs: J = jobs(self.hub)
        self.jobs.open_project = self.open_project
        self._layout = Layout(folders)
        self._clock = clock
        self._keep_final = keep_final
        self._means = Means(
            layout=self._layout,
            clock=clock,
            settings=settings,
            debug=settings.debug,
            places=places,
            jobs=self.jobs,
            pack=pack,
            archives=Archives(self._layout),
            ids=journal.KnownIds(self._layout),
            entrance=Entrance(),
            steps=steps or Steps(),
        )
        self._guard = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._opened: dict[str, _Opened] = {}
        self._counted: dict[str, tuple[int, int]] = {}
        self._make_cloud = cloud
        self._make_clusters = clusters
        self._make_deployments = deployments
        self._make_watches = watches
        self._make_looks = looks
        self._spend_of = spend
        self._make_storages = storages
        self._upkeep = upkeep
        self._at_end = at_end
        self._leaving = threading.Event()
        self._began_at = clock.monotonic()

    # The daemon's own questions

    def start(self) -> None:
        """Make the state directory and take up what cannot wait for a request. Raises AjError.

        That is every project with an unfinished job of our own; its queue waits for its first request.
        """
        self._layout.prepare()
        for key in sorted(self.jobs.unfinished_projects()):
            try:
                self._own(key, None)
            except AjError as error:
                LOG.warning("project %s was not taken up: %s", key, error)
        if self._layout.deployments.is_dir():
            self.deployments.start()
        if self._layout.watches.is_dir():
            self.watches.start()
        if self._upkeep is not None:
            self._upkeep.start()
        threading.Thread(target=self._prune_archives, name="archives", daemon=True).start()

    def _prune_archives(self) -> None:
        self._means.archives.prune(self._named_archives, now=self._clock.now())

    def _named_archives(self) -> set[str]:
        """Return the archives that a ticket which may run or be retried names, or a job on record."""
        return {code.digest for code in self._open_codes()} | self.jobs.digests()

    def _open_codes(self) -> Iterator[CodeRef]:
        """Go through the code of every ticket that may run or be retried, in whatever project."""
        over = (TicketState.COMPLETED, TicketState.CANCELED)
        for key in tickets.keys(self._layout):
            for ticket in tickets.scan(self._layout, key).tickets:
                if ticket.code and ticket.state not in over:
                    yield ticket.code

    def begin_drain(self) -> None:
        """Accept no new submission and start no further queued one."""
        self._leaving.set()
        for opened in self._all_opened():
            opened.desk.drain()

    def drain(self, timeout_s: float | None) -> bool:
        """Wait until no submission is being accepted or carried out; False when the time is over first."""
        self.begin_drain()
        limit = None if timeout_s is None else self._clock.monotonic() + timeout_s

        def left_s() -> float | None:
            return None if limit is None else max(0.0, limit - self._clock.monotonic())

        if not self._means.entrance.wait_empty(left_s()):
            return False
        return all(opened.desk.wait_quiet(left_s()) for opened in self._all_opened())

    def stop(self) -> None:
        """Let go of everything. What waits stays on disk; what still runs will be of unknown outcome."""
        self.begin_drain()
        if self._upkeep is not None:
            self._upkeep.stop()
        if "watches" in vars(self):
            self.watches.stop()
        if "deployments" in vars(self):
            self.deployments.stop()
        self.jobs.stop()  # while the projects are still ours: it may have something to write
        self._at_end()
        for opened in self._all_opened():
            opened.desk.close()
        self.hub.close()

    def busy(self) -> Busy:
        """Count what a stop would disturb, in the projects that are open."""
        counts = [opened.desk.counts() for opened in self._all_opened()]
        return Busy(
            tickets_running=sum(running for running, _ in counts),
            tickets_queued=sum(waiting for _, waiting in counts),
            jobs_running=self.jobs.running(),
            jobs_queued=self.jobs.queued(),
            replicas=self.deployments.running() if "deployments" in vars(self) else 0,
            watches=self.watches.open_count() if "watches" in vars(self) else 0,
        )

    def projects(self) -> tuple[ProjectQueue, ...]:
        """Return every project with a queue, and how many tickets wait there."""
        return tuple(self._queue_of(key) for key in tickets.keys(self._layout))

    def last_activity(self) -> float:
        """Return when a ticket last changed, or this began, by the monotonic clock."""
        return max((opened.desk.touched_at for opened in self._all_opened()), default=self._began_at)

    @functools.cached_property
    def cloud(self) -> Cloud:
        """Azure. Nothing of it is imported before the first question."""
        return self._make_cloud()

    @functools.cached_property
    def deployments(self) -> Deployments:
        """Long-running programs that take jobs. Made with the first question, or when there are some already."""
        return self._make_deployments(self.jobs, self._open)

    @functools.cached_property
    def watches(self) -> Watches:
        """Jobs of which somebody wants to hear. Made with the first question, or when there are some already."""
        made = self._make_watches(self)
        self.hub.heard = made.nudge
        return made

    @property
    def spend(self) -> Spend:
        """What jobs of our own cost, and caps on that."""
        return self._spend_of(self.jobs)

    @functools.cached_property
    def buckets(self) -> Storages:
        """Buckets, and what opens them."""
        return self._make_storages()

    @functools.cached_property
    def clusters(self) -> KubeJobs:
        """Jobs on clusters. Nothing of them is imported before the first question."""
        return self._make_clusters()

    @functools.cached_property
    def k8s(self) -> KubeLooks:
        """Clusters looked at by hand."""
        return self._make_looks()

    def jobs_at(self, workspace: str) -> Cloud | KubeJobs:
        """Return who knows the jobs of a workspace, or of a cluster when the word names one."""
        return self.clusters if BETWEEN in workspace else self.cloud

    # Submissions

    def submit(self, project: Project | None, submission: Submission) -> TicketAnswer:
        """Accept a submission for good and return its ticket, which is durable; the same call again gives it again.

        Raises UserError, Refused (code `id-taken`: draw another id; `key-reused`), DaemonError when the
        daemon is about to leave, AjError when code or disk refuse: there is no ticket then.
        """
        self._refuse_when_leaving()
        opened = self._open(project)
        accepted = submit.accept(opened.desk, submission, self._means)
        return self._set_going(accepted, opened)

    def submission(self, project: Project | None, key: str, wait_s: float, after: int | None = None) -> TicketAnswer:
        """Return the ticket of an AJ ID once it is final or the time is over. Raises NotFound.

        With `after` also once there are steps behind that number; they come along. An attempt that has no
        ticket any more is answered from the journal.
        """
        try:
            return self._followed(project, tickets.name_of(key), wait_s, after)
        except NotFound:
            record = journal.last(self._layout, _key(project), [key]).get(key)
            if record is None:
                raise
            return TicketAnswer(records.ticket_of(record))

    def _followed(self, project: Project | None, ticket: str, wait_s: float, after: int | None) -> TicketAnswer:
        desk = self._desk_of(project, ticket).desk
        found = desk.wait(ticket, wait_s, after)
        steps, told = desk.steps(ticket, after or 0)
        return TicketAnswer(found, desk.warnings(), steps, told)

    def _set_going(self, accepted: Accepted, opened: _Opened) -> TicketAnswer:
        if accepted.is_new and accepted.ticket.mode is Mode.DIRECT:
            start_direct(accepted.ticket, opened.desk, self._means)
        elif accepted.is_new:
            opened.worker.wake()
        return TicketAnswer(bare(accepted.ticket), (*accepted.warnings, *opened.desk.warnings()))

    # The queue

    def queue_list(self, project: Project | None, all_projects: bool, states: Sequence[str], limit: int) -> TicketList:
        """Return tickets of a project or of all, oldest first. Raises UserError on an unknown state."""
        here = _key(project)
        keys = list(dict.fromkeys((here, *tickets.keys(self._layout)))) if all_projects else [here]
        found: list[Ticket] = []
        warnings: list[str] = []
        for key in keys:
            seen, told = self._look(key, project if key == here else None, may_open=key == here)
            listed, left = tickets.chosen(seen, states, limit)
            found += listed
            warnings += told
            if left:
                warnings.append(f"{left} more in {key}: `aj queue list -n {len(listed) + left}`")
        return TicketList(tuple(found), tuple(self._queue_of(key) for key in keys), tuple(warnings))

    def queue_show(self, project: Project | None, ticket: str) -> TicketAnswer:
        """Return one ticket. Raises NotFound."""
        key = self._holder(project, ticket)
        seen, warnings = self._look(key, project if key == _key(project) else None, may_open=True)
        found = next((one for one in seen if one.ticket == ticket), None)
        if found is None:
            raise tickets.no_such(ticket)
        return TicketAnswer(found, warnings)

    def queue_wait(self, project: Project | None, ticket: str, timeout_s: float) -> TicketAnswer:
        """Return one ticket once it is final, or as it stands when the time is over. Raises NotFound, Refused."""
        desk = self._desk_of(project, ticket).desk
        return TicketAnswer(desk.wait(ticket, timeout_s), desk.warnings())

    def queue_cancel(self, project: Project | None, ticket: str) -> TicketAnswer:
        """Cancel a ticket that waits. Raises NotFound, Refused, AjError."""
        desk = self._desk_of(project, ticket).desk
        return TicketAnswer(desk.cancel(ticket), desk.warnings())

    def queue_retry(self, project: Project | None, ticket: str, force: bool) -> TicketAnswer:
        """Queue a failed ticket's request again as a new ticket. Raises as `retry.retry`, and DaemonError."""
        self._refuse_when_leaving()
        opened = self._desk_of(project, ticket)
        return self._set_going(retry.retry(ticket, opened.desk, self._means, force=force), opened)

    def queue_reconcile(self, project: Project | None, ticket: str) -> TicketAnswer:
        """Find out about an unknown outcome; a known one is returned as it is.

        Raises NotFound, Refused while it is open, OutcomeUnknown when it stays unknown, AjError.
        """
        desk = self._desk_of(project, ticket).desk
        found = desk.whole(ticket)
        if not found.state.is_final:
            raise Refused(f"{ticket} is {found.state}", code="open", hint=f"`aj queue wait {ticket}`")
        if found.outcome is Outcome.UNKNOWN:
            found = reconcile.settle(found, desk, self._means, self._leaving)
        return TicketAnswer(bare(found), desk.warnings())

    def queue_resume(self, project: Project | None) -> Done:
        """Open a project, or every one (None), so that what waits there goes on."""
        keys = [project.key] if project else tickets.keys(self._layout)
        waiting, warnings = 0, []
        for key in keys:
            try:
                opened = self._own(key, str(project.directory) if project else None)
            except AjError as error:
                warnings.append(f"{key}: {error.message}")
                continue
            waiting += opened.desk.counts()[1]
            warnings += opened.desk.warnings()
            opened.worker.wake()
        status = "ok" if waiting else "noop"
        return Done(status, f"{waiting} waiting in {len(keys)} projects", tuple(warnings))

    # Code

    def code_prune(self, keep_s: float, dry_run: bool) -> Pruned:
        """Remove the archives that nothing may need and that were not used for `keep_s`; or only name them."""
        box, named, now = self._means.archives, self._named_archives, self._clock.now()
        if dry_run:
            found = box.spare(named, now=now, keep_s=keep_s)
        else:
            found = box.prune(named, now=now, keep_s=keep_s, keep_bytes=archives.UNLIMITED)
        return Pruned(tuple(Archive(digest, size) for digest, size in found))

    def cloud_code_prune(self, project: Project | None, workspace: str, asked: Prune) -> Pruned:
        """Remove old code from the container of a workspace; or only name it. Raises UserError, NotFound, Refused."""

        def needed() -> set[str]:
            return {code.archive_sha256 for code in self._open_codes()}

        return self.cloud.prune_code(project, workspace, asked, needed)

    # Opening

    def _open(self, project: Project | None) -> _Opened:
        return self._open_key(_key(project), str(project.directory) if project else None)

    def open_project(self, key: str) -> None:
        """Make a project ours, if it is not yet. Raises Refused naming another owner, AjError."""
        self._open_key(key, None)

    def own_project(self, key: str) -> None:
        """Make a project ours as `open_project` does; what waits in its queue goes on with its first request."""
        self._own(key, None)

    def _open_key(self, key: str, path: str | None) -> _Opened:
        """Return a project that is ours, its queue at work. Raises Refused, AjError."""
        opened = self._own(key, path)
        opened.worker.wake()
        return opened

    def _own(self, key: str, path: str | None) -> _Opened:
        with self._guard:
            opening = self._opening.setdefault(key, threading.Lock())
        with opening:  # a second request waits until the first has taken up the queue
            with self._guard:
                opened = self._opened.get(key)
            opened = opened or self._take_over(key, path or tickets.project_path(self._layout, key))
            opened.desk.path = path or opened.desk.path
            return opened

    def _take_over(self, key: str, path: str | None) -> _Opened:
        desk = Desk(self._layout, key, path, self._clock, self.hub.publish, keep_final=self._keep_final)
        desk.open(f"{lock.SOCKET}{Place(self._layout).socket}")
        try:
            self.jobs.adopt(key)
        except BaseException:
            desk.close()
            raise
        opened = _Opened(desk, Worker(desk, self._means))
        with self._guard:
            self._opened[key] = opened
        if self._leaving.is_set():
            desk.drain()
        if self._layout.watches.is_dir():
            self.watches.adopt(key)
        return opened

    def _all_opened(self) -> list[_Opened]:
        with self._guard:
            return list(self._opened.values())

    def _refuse_when_leaving(self) -> None:
        if self._leaving.is_set():
            raise DaemonError("the daemon is about to leave", code="retiring", hint="try again in a moment")

    def _holder(self, project: Project | None, ticket: str) -> str:
        """Return the key of the project that has this ticket, this project first. Raises NotFound."""
        here = _key(project)
        mine = [opened.desk for opened in self._all_opened() if opened.desk.get(ticket) is not None]
        known = [desk.key for desk in mine if desk.key == here] or [desk.key for desk in mine]
        key = known[0] if known else tickets.key_of(self._layout, ticket, here)
        if key is None:
            raise tickets.no_such(ticket)
        return key

    def _desk_of(self, project: Project | None, ticket: str) -> _Opened:
        key = self._holder(project, ticket)
        return self._open(project) if key == _key(project) else self._open_key(key, None)

    # Looking

    def _look(self, key: str, project: Project | None, *, may_open: bool) -> tuple[list[Ticket], tuple[str, ...]]:
        """Return the tickets of a project and what is wrong with its queue, ours or not."""
        with self._guard:
            opened = self._opened.get(key)
        told: tuple[str, ...] = ()
        if opened is None and may_open:
            try:
                opened = self._open_key(key, str(project.directory) if project else None)
            except AjError as error:
                told = (f"the queue is only looked at: {error.message}",)
        if opened is not None:
            opened.worker.wake()
            return opened.desk.all(), opened.desk.warnings()
        seen = tickets.scan(self._layout, key)
        return list(seen.tickets), (*told, *seen.warnings)

    def _queue_of(self, key: str) -> ProjectQueue:
        with self._guard:
            opened = self._opened.get(key)
        if opened is not None:
            return ProjectQueue(key, opened.desk.path, opened.desk.counts()[1])
        return ProjectQueue(key, tickets.project_path(self._layout, key), self._count(key))

    def _count(self, key: str) -> int:
        """Count the queued tickets of a project that is not open, again only when its folder changed."""
        stamp = tickets.stamp(self._layout, key)
        known = self._counted.get(key)
        if known is None or known[0] != stamp:
            known = stamp, tickets.count_queued(self._layout, key)
            self._counted[key] = known
        return known[1]


def _none(words: str, code: str = "no-cloud") -> NoReturn:
    raise UserError(f"this engine {words}", code=code)


def _key(project: Project | None) -> str:
    return project.key if project else NO_PROJECT
