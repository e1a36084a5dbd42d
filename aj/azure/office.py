"""What every service that puts jobs into a workspace does alike: pack up, submit, find again, look, ask for the end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from aj.azure import endings, jobs, submission
from aj.azure.arm import Session, Workspace
from aj.azure.jobs import Job
from aj.azure.submission import Means, Parcel, Planned
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model import commandjob
from aj.model.code import CodeRef
from aj.model.commandjob import Code
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.step import Kind, Step


@dataclass(frozen=True)
class Where:
    """A workspace, the tenant if one was chosen, and whether nothing else can have been meant."""

    workspace: Workspace
    tenant: str | None
    is_certain: bool


@dataclass(frozen=True)
class Office:
    """The desk of one service."""

    service: str
    means: Means

    def check(self, spec: JobSpec) -> None:
        """Raise UserError on a name or an experiment that the service would not take, before anybody is asked."""
        commandjob.checked_name(spec.name)
        commandjob.experiment(spec)

    def parcel(self, code: CodeRef | None) -> Parcel:
        """Return what has to be delivered for a job. Raises UserError when no code was packed."""
        if code is None:
            raise UserError(f"a job of `{self.service}` needs packed code")
        bootstrap = self.means.bootstrap
        named = Code(code.digest, code.archive_sha256, hashlib.sha256(bootstrap).hexdigest())
        return Parcel(self.means.archive(code), named, code.archive_bytes, bootstrap)

    def tell(self, aj_id: str, kind: Kind, detail: str) -> None:
        """Pass on what happens to a submission."""
        self.means.tell(aj_id, Step(kind, detail))

    def warn(self, aj_id: str, *warnings: str) -> None:
        """Pass on what a user should know."""
        for words in warnings:
            self.tell(aj_id, Kind.WARNING, words)

    def submit(self, planned: Planned) -> Handle:
        """Send a submission. Raises as submission.send."""
        sent = submission.send(planned, self.means)
        return replace(self._handle(planned.workspace, planned.tenant, sent.job), uploaded_bytes=sent.uploaded_bytes)

    def find(self, spec: JobSpec, otherwise: Callable[[], Where]) -> Handle | None:
        """Look for the job of a submission where it was sent; `otherwise` tells where, if that is forgotten.

        Raises as submission.look_up.
        """
        sent = submission.where_sent(spec.id, self.means.memory)
        where = Where(*sent, is_certain=True) if sent else otherwise()
        session = self.means.session(spec, where.tenant)
        job = submission.look_up(session, where.workspace, spec, is_certain=where.is_certain)
        return None if job is None else self._handle(where.workspace, where.tenant, job)

    def job(self, handle: Handle) -> Job | None:
        """Return the job of a handle; None when its workspace has none of that name."""
        session, workspace = self._open(handle)
        return jobs.find(session, workspace, handle.name)

    def cancel(self, handle: Handle) -> None:
        """Ask a job to end, unless it has. Raises as endings.cancel."""
        session, workspace = self._open(handle)
        endings.cancel(session, workspace, handle.name)

    def _open(self, handle: Handle) -> tuple[Session, Workspace]:
        workspace, tenant = submission.at(handle.place)
        return self.means.session(None, tenant), workspace

    def _handle(self, workspace: Workspace, tenant: str | None, job: Job) -> Handle:
        return Handle(self.service, submission.place(workspace, tenant), job.name, portal_url=job.portal)
