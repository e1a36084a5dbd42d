"""Deployments: list, show, make, change, remove; send jobs to them, and follow the first claim of each."""

from __future__ import annotations

import os
from typing import TypeVar

from aj.base.errors import AjError, DaemonError, NotFound, OutcomeUnknown
from aj.client.line import AnswerLost, Line
from aj.client.queue import named
from aj.model.claim import LONGEST_WAIT_S
from aj.wire import paths
from aj.wire.deployment import (
    ClaimAnswer,
    Create,
    Delete,
    DeploymentAnswer,
    DeploymentList,
    Targeting,
    Upgrade,
)
from aj.wire.messages import Done, JobAnswer
from aj.wire.paths import Route

T = TypeVar("T")


class Deployments:
    """What a caller can do with deployments."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def list(self) -> DeploymentList:
        """List all deployments of this user, by name."""
        return self._line.read(DeploymentList, paths.DEPLOYMENTS)

    def show(self, name: str) -> DeploymentAnswer:
        """Return one deployment with its replicas and the jobs that they hold. Raises NotFound."""
        return self._line.read(DeploymentAnswer, paths.DEPLOYMENT, named(name, "name"))

    def create(self, asked: Create) -> DeploymentAnswer:
        """Make a deployment. Raises UserError, Refused, OutcomeUnknown."""
        return self._change(DeploymentAnswer, paths.DEPLOYMENT_CREATE, asked.name, asked)

    def upgrade(self, name: str, asked: Upgrade) -> DeploymentAnswer:
        """Change a deployment. Raises NotFound, UserError, Refused, OutcomeUnknown."""
        return self._change(DeploymentAnswer, paths.DEPLOYMENT_UPGRADE, name, asked, named(name, "name"))

    def delete(self, name: str, *, force: bool = False) -> Done:
        """Let a deployment end. Raises NotFound, Refused while it has unfinished jobs, OutcomeUnknown."""
        return self._change(Done, paths.DEPLOYMENT_DELETE, name, Delete(force), named(name, "name"))

    def submit(self, name: str, asked: Targeting) -> JobAnswer:
        """Send a job to a deployment. Raises NotFound, Refused when its id is taken, UserError.

        Raises OutcomeUnknown when the answer was lost and it cannot be found out whether it was admitted.
        """
        before = self._line.hello().instance
        try:
            return self._line.change(JobAnswer, paths.DEPLOYMENT_SUBMIT, named(name, "name"), body=asked)
        except AnswerLost as lost:
            return self._find_out(asked, before, lost)

    def _find_out(self, asked: Targeting, before: str, lost: AnswerLost) -> JobAnswer:
        """Ask what became of a submission whose answer was lost. Raises OutcomeUnknown, DaemonError if nothing did."""
        try:
            found = self._line.read(JobAnswer, paths.JOB, asked.id)
        except NotFound as error:
            if self._line.hello().instance != before:
                # The one that was asked is gone, and nothing of it is on disk: it never was admitted.
                words = f"the daemon ended before it admitted job {asked.id}; nothing was submitted"
                raise DaemonError(words, code="not-accepted", hint="submit it again") from error
            raise _unknown(asked.id, lost) from error
        except AjError as error:
            raise _unknown(asked.id, lost) from error
        target = found.workload.targeted
        if target is None or target.nonce != asked.nonce:
            raise _unknown(asked.id, lost)
        return found

    def observe(self, job_id: str, revision: int, *, timeout_s: float = LONGEST_WAIT_S) -> ClaimAnswer:
        """Wait for what becomes of the first claim of a submission, and return it. Raises NotFound, UserError."""
        query = {"revision": revision, "timeout_s": round(timeout_s, 3)}
        return self._line.read(ClaimAnswer, paths.JOB_CLAIM, named(job_id, "id"), query=query)

    def _change(self, kind: type[T], route: Route, name: str, body: object, *segments: str) -> T:
        try:
            return self._line.change(kind, route, *segments, body=body)
        except AnswerLost as lost:
            hint = f"`aj deployment status {name}`"
            raise OutcomeUnknown(f"the answer about {name} was lost: {lost}", hint=hint) from lost


def draw_nonce() -> str:
    """Draw a word by which a caller knows its own submission again."""
    return os.urandom(8).hex()


def _unknown(job_id: str, lost: AnswerLost) -> OutcomeUnknown:
    hint = f"`aj status {job_id}`"
    return OutcomeUnknown(f"the answer to submission {job_id} was lost: {lost}", hint=hint, details={"id": job_id})
