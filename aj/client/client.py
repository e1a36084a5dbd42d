"""The caller's side in one object: `Client().jobs.list()`, `client.queue.wait(ticket)`, and so on.

Nothing is connected until something is asked, and the daemon is started when it is absent. Nothing is
printed: what a user may want to know meanwhile is told to the `Telling` that was given.
"""

from __future__ import annotations

import functools
from types import TracebackType
from typing import TYPE_CHECKING

from aj.base import paths
from aj.base import settings as environment
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.client.launch import Telling
from aj.client.line import Line

if TYPE_CHECKING:
    from aj.client.buckets import Buckets
    from aj.client.cloudjobs import CloudJobs
    from aj.client.code import Code
    from aj.client.daemon import Daemon
    from aj.client.deployments import Deployments
    from aj.client.events import Events
    from aj.client.inventory import Inventory
    from aj.client.jobs import Jobs
    from aj.client.k8s import K8s
    from aj.client.logs import Logs
    from aj.client.queue import Queue
    from aj.client.spend import Spend
    from aj.client.submissions import Submissions
    from aj.client.watches import Watches


class Client:
    """Asks the daemon of this user. Not for several threads at once: each makes its own.

    Without settings, the environment and the project of the working directory are taken.
    """

    def __init__(
        self, settings: Settings | None = None, project: Project | None = None, *, telling: Telling | None = None
    ) -> None:
        if settings is None:
            settings = environment.read()
            project = project or paths.find_project(settings, paths.working_directory(settings))
        self._line = Line(settings, project, telling or Telling())

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up. The daemon goes on."""
        self._line.forget()

    @property
    def project(self) -> Project | None:
        """The project that is asked about."""
        return self._line.project

    @functools.cached_property
    def submissions(self) -> Submissions:
        """Submissions: promise one, follow it."""
        from aj.client.submissions import Submissions

        return Submissions(self._line)

    @functools.cached_property
    def queue(self) -> Queue:
        """Tickets: list, show, wait, cancel, retry, reconcile, resume."""
        from aj.client.queue import Queue

        return Queue(self._line)

    @functools.cached_property
    def jobs(self) -> Jobs:
        """Jobs: list, show, wait, terminate, resubmit, exec, delete, find."""
        from aj.client.jobs import Jobs

        return Jobs(self._line)

    @functools.cached_property
    def cloud_jobs(self) -> CloudJobs:
        """Jobs of workspaces: list, count, show, wait, cancel, delete, read their logs."""
        from aj.client.cloudjobs import CloudJobs

        return CloudJobs(self._line)

    @functools.cached_property
    def inventory(self) -> Inventory:
        """What Azure has for this user: sign-in, quota, types of machines, images."""
        from aj.client.inventory import Inventory

        return Inventory(self._line)

    @functools.cached_property
    def buckets(self) -> Buckets:
        """Buckets, credentials and secrets."""
        from aj.client.buckets import Buckets

        return Buckets(self._line)

    @functools.cached_property
    def spend(self) -> Spend:
        """What is spent, and caps on it."""
        from aj.client.spend import Spend

        return Spend(self._line)

    @functools.cached_property
    def code(self) -> Code:
        """Packed code that the daemon keeps."""
        from aj.client.code import Code

        return Code(self._line)

    @functools.cached_property
    def k8s(self) -> K8s:
        """Clusters looked at by hand."""
        from aj.client.k8s import K8s

        return K8s(self._line)

    @functools.cached_property
    def watches(self) -> Watches:
        """Jobs of which somebody wants to hear when they move."""
        from aj.client.watches import Watches

        return Watches(self._line)

    @functools.cached_property
    def deployments(self) -> Deployments:
        """Deployments: list, show, make, change, remove, send jobs there."""
        from aj.client.deployments import Deployments

        return Deployments(self._line)

    @functools.cached_property
    def logs(self) -> Logs:
        """What jobs of this machine wrote."""
        from aj.client.logs import Logs

        return Logs(self._line)

    @functools.cached_property
    def events(self) -> Events:
        """Everything that changes, as it changes."""
        from aj.client.events import Events

        return Events(self._line)

    @functools.cached_property
    def daemon(self) -> Daemon:
        """The daemon itself: status, start, stop, restart."""
        from aj.client.daemon import Daemon

        return Daemon(self._line)
