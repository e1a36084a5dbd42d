"""What the services of Azure need of this house: sessions, settings, packed code, and somebody to tell.

The settings are those of the job's own project, as they are at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aj.azure import asker, chosen, identity
from aj.azure.arm import Session, Workspace
from aj.azure.delivery import Delivery
from aj.azure.memory import Memory
from aj.azure.submission import Delivered, Means, Parcel
from aj.base import units
from aj.base.clock import Clock
from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.engine.steps import Steps
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.step import Kind, Step
from aj.pack import archive, node
from aj.store import archives, config
from aj.store.config import Config
from aj.store.layout import Layout

Open = Callable[[Config, str | None], Session]
Tell = Callable[[Step], None]


@dataclass(frozen=True)
class Native:
    """One daemon's means. `open_session` opens a session by settings, in a tenant (None: the user's own)."""

    open_session: Open
    layout: Layout
    settings: Settings
    clock: Clock
    steps: Steps

    def means(self) -> Means:
        """Return what a service of Azure asks for."""
        return Means(
            session=self._session,
            chosen=lambda spec: chosen.read(self._config(spec)),
            deliver=self._deliver,
            archive=self._archive,
            bootstrap=node.bootstrap(),
            memory=Memory(self.layout.answers / "azure", self.clock),
            tell=self.steps.tell,
        )

    def _config(self, spec: JobSpec | None) -> Config:
        project = Project(Path(spec.project)) if spec is not None and spec.project else None
        return config.read(self.layout, project, self.settings)

    def _session(self, spec: JobSpec | None, tenant: str | None) -> Session:
        return self.open_session(self._config(spec), tenant)

    def _archive(self, code: CodeRef) -> Path:
        found = archive.find(self.layout.code, code)
        if found is None:
            raise archives.gone(code.digest)
        return found

    def _deliver(self, session: Session, workspace: Workspace, parcel: Parcel, *, tell: Tell) -> Delivered:
        """Bring a parcel, after telling as whom, and what. Raises as Delivery."""
        asker.known(session, self.layout.answers)  # what was found out for somebody else is dropped
        tell(Step(Kind.AUTH, f"signed in as {_who(session)}"))
        tell(Step(Kind.PACKAGE, f"code {parcel.code.digest[:12]}, archive of {units.size(parcel.size_bytes)}"))
        may_use_key = bool(self._config(None).value("storage.allow_account_key"))
        return Delivery(self.settings, may_use_key)(session, workspace, parcel, tell=tell)


def _who(session: Session) -> str:
    """Name the person or principal whose token is used, as far as it tells."""
    try:
        found = identity.whoami(session)
    except RemoteError:
        return "somebody whose token tells no name"
    return found.name or found.object_id or "somebody whose token tells no name"
