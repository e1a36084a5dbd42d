"""The engine of the product, put together: the services there are, the jobs of this machine, the settings."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aj.backend import registry
from aj.backend.protocol import Driver
from aj.base import paths
from aj.base.clock import Clock
from aj.base.errors import ConfigError
from aj.base.late import Shelf, late
from aj.base.noun import dataclass
from aj.base.paths import Folders, Project
from aj.base.settings import Settings
from aj.engine.engine import Engine
from aj.engine.hub import Hub
from aj.engine.janitor import Keep
from aj.engine.jobs import Jobs
from aj.engine.means import Packed
from aj.engine.programs import Programs
from aj.engine.services import Services
from aj.engine.steps import Steps
from aj.engine.upkeep import Upkeep
from aj.model.code import CodeWarning
from aj.model.job import JobSpec
from aj.store import config, tickets
from aj.store.config import Config
from aj.store.layout import Layout
from aj.store.traces import Traces

if TYPE_CHECKING:
    from aj.azure.sessions import Sessions
    from aj.bucket.door import Door
    from aj.engine.artifacts import Artifacts
    from aj.engine.cloud import Cloud
    from aj.engine.deployments import Deployments
    from aj.engine.kube import Kube
    from aj.engine.kubejobs import KubeJobs
    from aj.engine.kubelooks import KubeLooks
    from aj.engine.pins import Pins
    from aj.engine.storage import Storages
    from aj.engine.watches import Watches
    from aj.model.cloudjob import CloudJob
    from aj.model.handle import Handle
    from aj.net.token import TokenSource

T = TypeVar("T")
Tokens = Callable[[str | None], "TokenSource"]
LOG = logging.getLogger("aj.engine")


def engine(settings: Settings, folders: Folders, clock: Clock) -> Engine[Jobs]:
    """Make the engine that the daemon runs. The user's settings count as they are at this moment."""
    layout = Layout(folders)
    chosen = _settings(layout, settings)
    keep = Keep(
        work_s=_get(chosen, Config.seconds, "retention.work"),
        records_s=_get(chosen, Config.seconds, "retention.jobs"),
        log_bytes=max(Keep().log_bytes, _get(chosen, Config.number, "logs.keep")),
    )
    azure = _Azure(layout, settings, clock)
    slots = _get(chosen, Config.number, "local.slots")
    gpus: int | None = _get(chosen, Config.number, "local.gpus")  # None when nobody set it: then they are counted
    tokens = functools.partial(azure.tokens, chosen)
    drivers = Shelf({"local": lambda: _local(layout, settings, clock, slots, gpus)})
    pins = late(lambda: _pins(settings, clock))

    def jobs(hub: Hub) -> Jobs:
        return Jobs(
            layout,
            drivers,
            clock,
            hub.publish,
            keep=keep,
            log=LOG.warning,
            artifacts=late(lambda: _buckets(layout, _door(layout, settings, tokens), clock)),
            resolve=lambda image: pins.digest(image),
        )

    programs = Programs()
    return Engine(
        settings,
        folders,
        clock,
        jobs,
        places=Services(
            azure.native,
            {
                "amlt": lambda: amlt(layout, settings, azure.steps, programs),
                "volcano": lambda: azure.kube.means(),
            },
        ),
        pack=packer(layout, paths.home(settings)),
        keep_final=_get(chosen, Config.number, "retention.queue"),
        cloud=azure.cloud,
        clusters=azure.clusters,
        looks=azure.looks,
        deployments=functools.partial(_deployments, layout, settings, clock),
        watches=functools.partial(_watches, layout, settings, clock),
        spend=lambda jobs: jobs.spend,
        storages=lambda: _storages(layout, _door(layout, settings, tokens), clock),
        steps=azure.steps,
        upkeep=Upkeep(Traces(layout.clusters), clock, lambda: azure.kube.care(), LOG.warning),
        at_end=programs.end,
    )


def amlt(layout: Layout, settings: Settings, steps: Steps, programs: Programs) -> object:
    """Make the means of the external program amlt."""
    from aj.backend.amlt.backend import Means

    def is_over(project: Path, aj_id: str) -> bool:
        return tickets.is_settled(layout, Project(project).key, tickets.name_of(aj_id))

    return Means(settings, steps.tell, is_over, programs.run)


@dataclass(frozen=True)
class _Azure:
    """What speaks to Azure, over one set of sessions. Its rooms are imported when they are first asked for."""

    layout: Layout
    settings: Settings
    clock: Clock
    steps: Steps = field(default_factory=Steps)

    @functools.cached_property
    def _sessions(self) -> Sessions:
        from aj.azure.sessions import Sessions

        return Sessions(self.settings, self.clock)

    def tokens(self, chosen: Config, tenant: str | None) -> TokenSource:
        """Return who gives tokens by the user's own sign-in. Raises ConfigError."""
        return self._sessions.open(chosen, tenant).tokens

    def cloud(self) -> Cloud:
        """Make what answers questions about Azure."""
        from aj.engine.cloud import Cloud

        return Cloud(self._sessions.open, self.layout, self.settings, self.clock)

    @functools.cached_property
    def kube(self) -> Kube:
        """The means of the service that puts jobs on clusters; Azure is behind their storage."""
        from aj.engine.kube import Clusters, Kube

        clusters = Clusters(self.layout, self.settings, self.clock)
        return Kube(clusters, self._sessions.open, self.layout, self.settings, self.clock, self.steps)

    def looks(self) -> KubeLooks:
        """Make what looks at clusters by hand."""
        from aj.engine.kubelooks import KubeLooks

        return KubeLooks(
            self.kube.clusters,
            self.kube.tidy,
            lambda cluster, job, hours: self.kube.care().refresh(cluster, job, hours),
        )

    def clusters(self) -> KubeJobs:
        """Make what answers questions about jobs on clusters."""
        from aj.engine.kubejobs import KubeJobs

        return KubeJobs(self.kube.clusters, self.kube.memory, self.clock)

    def native(self) -> object:
        """Make the means of the services that put jobs into a workspace."""
        from aj.engine.native import Native

        return Native(self._sessions.open, self.layout, self.settings, self.clock, self.steps).means()


def _local(layout: Layout, settings: Settings, clock: Clock, slots: int, gpus: int | None) -> Driver:
    """Make what runs jobs on this machine."""
    from aj.backend.local.driver import LocalDriver

    return LocalDriver(layout, settings, clock, slots=slots, gpus=gpus)


def _pins(settings: Settings, clock: Clock) -> Pins:
    """Make what asks for the digests of images."""
    from aj.engine.pins import Pins

    return Pins(settings, clock)


def _door(layout: Layout, settings: Settings, tokens: Tokens) -> Door:
    """Make what opens buckets."""
    from aj.bucket.door import Door

    return Door(layout, settings, tokens)


def _buckets(layout: Layout, door: Door, clock: Clock) -> Artifacts:
    """Make what restores and saves the folders of jobs."""
    from aj.engine.buckets import JobBuckets

    return JobBuckets(layout, door, clock)


def _deployments(
    layout: Layout, settings: Settings, clock: Clock, jobs: Jobs, open_project: Callable[[Project | None], object]
) -> Deployments:
    """Make what looks after deployments; it is imported when it is first asked for."""
    from aj.backend.local.replica import LocalReplicas
    from aj.engine.deployments import Deployments

    replicas = LocalReplicas(settings, clock)
    made = Deployments(layout, clock, jobs, replicas, log=LOG.warning, open_project=open_project)
    jobs.targets = made
    return made


def _storages(layout: Layout, door: Door, clock: Clock) -> Storages:
    """Make what answers questions about buckets; it is imported when it is first asked for."""
    from aj.engine.storage import Storages

    return Storages(layout, door, clock)


def _watches(layout: Layout, settings: Settings, clock: Clock, engine: Engine[Jobs]) -> Watches:
    """Make what watches jobs; it is imported when it is first asked for."""
    from aj.engine import watches
    from aj.engine.notify import Notifier
    from aj.engine.sight import Sight

    def elsewhere(of: Project | None, place: Handle) -> CloudJob | None:
        traits = registry.traits(place.service)
        if traits.driven or not traits.answers:
            return None  # another program's job: it alone tells
        word = traits.spelled(place)
        return engine.jobs_at(word).job(of, word, place.name).job

    sight = Sight(layout, engine.jobs.find, elsewhere)
    notifier = Notifier(settings, clock)
    means = watches.Means(layout, clock, sight, engine.hub.publish, notifier, LOG.warning, own=engine.own_project)
    return watches.Watches(means)


def packer(layout: Layout, home: Path | None = None) -> Callable[[JobSpec], Packed]:
    """Return what selects and packs the code of a spec; `home` has the files of `~/.ssh` that may go along."""

    def pack(spec: JobSpec) -> Packed:
        from aj.pack import archive, node, ssh, walk

        selection = walk.select(spec.code, layout.stat_cache)
        is_native = registry.traits(spec.service).native
        generated = node.added(spec.code, home) if is_native else ssh.payload(spec.code, home)
        code = archive.pack(selection, folder=layout.code, generated=generated)
        told = (*selection.warnings, *ssh.warnings(generated))
        return Packed(code, tuple(_words(warning) for warning in told))

    return pack


def _words(warning: CodeWarning) -> str:
    place = ":".join(str(part) for part in (warning.file, warning.line) if part is not None)
    return f"{place}: {warning.message}" if place else warning.message


def _settings(layout: Layout, settings: Settings) -> Config:
    """Read the user's settings; a broken file is told in the log, and the defaults hold."""
    try:
        return config.read(layout, None, settings)
    except ConfigError as error:
        LOG.warning("settings are not used: %s", error)
        return Config((), settings)


def _get(chosen: Config, ask: Callable[[Config, str], T], key: str) -> T:
    """Return one setting; a wrong value is told in the log, and the default holds."""
    try:
        return ask(chosen, key)
    except ConfigError as error:
        LOG.warning("setting is not used: %s", error)
        return ask(Config(()), key)
