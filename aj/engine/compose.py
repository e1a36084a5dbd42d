"""The engine of the product, put together: the services there are, the jobs of this machine, the settings."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aj.backend import registry
from aj.backend.local.driver import LocalDriver
from aj.backend.protocol import Driver
from aj.base import paths
from aj.base.clock import Clock
from aj.base.errors import ConfigError
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
from aj.model.code import CodeWarning
from aj.model.job import JobSpec
from aj.pack import archive, node, ssh, walk
from aj.store import config, tickets
from aj.store.config import Config
from aj.store.layout import Layout

if TYPE_CHECKING:
    from aj.azure.sessions import Sessions
    from aj.engine.cloud import Cloud

T = TypeVar("T")
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
    drivers: Mapping[str, Driver] = {"local": LocalDriver(layout, settings, clock, slots=slots, gpus=gpus)}

    def jobs(hub: Hub) -> Jobs:
        return Jobs(layout, drivers, clock, hub.publish, keep=keep, log=LOG.warning)

    programs = Programs()
    return Engine(
        settings,
        folders,
        clock,
        jobs,
        places=Services(azure.native, {"amlt": lambda: amlt(layout, settings, azure.steps, programs)}),
        pack=packer(layout, paths.home(settings)),
        keep_final=_get(chosen, Config.number, "retention.queue"),
        cloud=azure.cloud,
        steps=azure.steps,
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

    def cloud(self) -> Cloud:
        """Make what answers questions about Azure."""
        from aj.engine.cloud import Cloud

        return Cloud(self._sessions.open, self.layout, self.settings, self.clock)

    def native(self) -> object:
        """Make the means of the services that put jobs into a workspace."""
        from aj.engine.native import Native

        return Native(self._sessions.open, self.layout, self.settings, self.clock, self.steps).means()


def packer(layout: Layout, home: Path | None = None) -> Callable[[JobSpec], Packed]:
    """Return what selects and packs the code of a spec; `home` has the files of `~/.ssh` that may go along."""

    def pack(spec: JobSpec) -> Packed:
        selection = walk.select(spec.code, layout.stat_cache)
        is_native = registry.traits(spec.service).native
        generated = node.added(spec.code, home) if is_native else archive.NOTHING
        code = archive.pack(selection, folder=layout.code, generated=generated)
        told = (*selection.warnings, *(ssh.warnings(generated) if is_native else ()))
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
