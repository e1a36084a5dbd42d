"""Clusters as this house uses them: opened by the user's kubeconfig, and with what jobs need brought there.

Kubeconfigs are read anew each time, since other programs change them; what is reached by the same words keeps its
connections. The settings of a job's own project count, as they are at that moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aj.azure.arm import Session
from aj.azure.memory import Memory
from aj.backend.volcano import known, pins, porter, volume
from aj.backend.volcano.backend import Means
from aj.backend.volcano.courier import Courier
from aj.backend.volcano.variables import Facts
from aj.base.clock import Clock
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.engine.steps import Steps
from aj.kube import config as kubeconfigs
from aj.kube.client import Cluster
from aj.kube.jobs import Job
from aj.kube.resources import JOBS
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.pack import archive
from aj.store import archives, config
from aj.store.config import Config
from aj.store.layout import Layout
from aj.store.traces import Traces

if TYPE_CHECKING:
    from aj.engine.kubecare import KubeCare

KEPT = 16  # clusters with open connections; a user has a few
Open = Callable[[Config, str | None], Session]


class Clusters:
    """The clusters of one daemon's user. Safe between threads."""

    def __init__(self, layout: Layout, settings: Settings, clock: Clock) -> None:
        self._folder = layout.folders.runtime / "kube"
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._opened: list[Cluster] = []

    def open(self, context: str | None = None, namespace: str | None = None, file: Path | None = None) -> Cluster:
        """Return a cluster by context and namespace, None for the usual ones. Raises ConfigError."""
        access = kubeconfigs.read(self._settings, file).access(context, namespace)
        with self._lock:
            for known in self._opened:
                if known.access == access:
                    return known
            found = Cluster(access, self._settings, self._clock, self._folder)
            self._opened.append(found)
            if len(self._opened) > KEPT:
                self._opened.pop(0).close()
            return found


@dataclass(frozen=True)
class Kube:
    """One daemon's means. `open_session` opens a session with Azure by settings, in a tenant (None: the user's own)."""

    clusters: Clusters
    open_session: Open
    layout: Layout
    settings: Settings
    clock: Clock
    steps: Steps

    def means(self) -> Means:
        """Return what the service asks for."""
        return Means(
            open=self.clusters.open,
            facts=self._facts,
            archive=self._archive,
            courier=self._courier(),
            memory=self.memory,
            clock=self.clock,
            tell=self.steps.tell,
        )

    @property
    def memory(self) -> Memory:
        """What is remembered of submissions and of jobs that their clusters have forgotten."""
        return Memory(self.layout.answers / "kube", self.clock)

    @property
    def traces(self) -> Traces:
        """What was made on clusters and must not stay there."""
        return Traces(self.layout.clusters)

    @property
    def owner(self) -> str:
        """The word that tells what was made from this state folder from what others made. Raises AjError."""
        return self.traces.owner()

    def tidy(self, cluster: Cluster, job: Job) -> tuple[str, ...]:
        """Remove the code of a job from its volume, before it is forgotten where that is. Raises as `volume.forget`."""
        document = cluster.find(JOBS, job.name, job.namespace)
        tasks = document.each("spec", "tasks") if document else ()
        claims = [claim for task in job.tasks for claim in task.claims]
        if job.aj_id is None or not tasks or not claims:
            return ()
        image = pins.read(config.read(self.layout, None, self.settings)).helper_image
        pod = tasks[0].inner("template", "spec").values
        wanted = porter.of_claim(job.aj_id, job.namespace, claims[0], pod, image=image, owner=self.owner)
        volume.forget(cluster, wanted, [job.aj_id], self.traces)
        return ()

    def care(self) -> KubeCare:
        """Return what looks after the things that were made on clusters."""
        from aj.engine.kubecare import KubeCare

        return KubeCare(
            open=self.clusters.open,
            session=lambda project: self.open_session(self._config(project), None),
            chosen=lambda project: pins.read(self._config(project)),
            settings=self.settings,
            clock=self.clock,
            traces=self.traces,
            owner=self.owner,
        )

    def _courier(self) -> Courier:
        return Courier(
            session=lambda spec: self.open_session(self._config(spec.project), None),
            chosen=lambda spec: pins.read(self._config(spec.project)),
            settings=self.settings,
            clock=self.clock,
            traces=self.traces,
            owner=self.owner,
            tell=self.steps.tell,
        )

    def _config(self, project: str | None) -> Config:
        return config.read(self.layout, Project(Path(project)) if project else None, self.settings)

    def _facts(self, spec: JobSpec, accepted_at: str) -> Facts:
        return known.facts(self._config(spec.project), accepted_at=accepted_at)

    def _archive(self, code: CodeRef) -> Path:
        found = archive.find(self.layout.code, code)
        if found is None:
            raise archives.gone(code.digest)
        return found
