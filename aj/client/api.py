"""The client of Python programs: `from aj import Client`.

    with Client() as client:
        job = client.submit("registry.example/train:1", command=["python", "train.py"], gpu="h100")
        job.wait()

It asks the daemon of this user, which is started when it is absent. Everything that can go wrong is one of
the errors that `aj` exports. There are no groups and no batches: submit what is independent, then wait.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from aj.base import agents, paths
from aj.base.agents import Tag
from aj.base.errors import AjError, OutcomeUnknown, UserError
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.client import client, submissions
from aj.client.deployments import draw_nonce
from aj.client.errors import JobSubmissionUncertain
from aj.client.job import Job, Status
from aj.client.launch import Telling
from aj.client.request import Asking, spec
from aj.model.deployment import DeploymentStatus
from aj.model.job import JobSpec
from aj.model.state import JobState
from aj.model.ticket import Mode, TicketState
from aj.model.workload import Workload
from aj.wire import errors
from aj.wire.deployment import Targeting


class Client(client.Client):
    """Submits jobs and follows them. Not for several threads at once: each makes its own.

    Without settings, the environment and the project of the working directory are taken. Nothing is
    connected until something is asked. Use it in a `with` block, or `close` it.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        project: Project | None = None,
        *,
        telling: Telling | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        super().__init__(settings, project, telling=telling)
        self._stop = stop

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def stopping(self) -> threading.Event | None:
        """What ends the waits of this client early, or None."""
        return self._stop

    def submit(
        self,
        image: str | None = None,
        *,
        command: str | Sequence[str] = (),
        template: str | None = None,
        directory: str | Path | None = None,
        deployment: str | None = None,
        workload_id: str | None = None,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        gpu: str | int | None = None,
        cpus: float | None = None,
        memory: str | None = None,
        spot: bool = False,
        credential_name: str | None = None,
        cloud_config: Mapping[str, object] | None = None,
        secrets: Sequence[str] = (),
        timeout: float | None = None,
        max_runtime: float | None = None,
        max_cost: float | str | None = None,
        wait: bool = False,
    ) -> Job:
        """Submit a job and return its handle; it runs without this program from then on.

        One of three: `image` with the words for its entrypoint in `command`; `command` alone, which brings the
        files of `directory` (the working directory) along, with the settings of `template` if one is named; or
        `deployment`, to which a job carries its id alone. `gpu` is a count or such as `"h100:8"`;
        `cloud_config` names buckets (`input_bucket`, `output_bucket`, `checkpoint_bucket`), which
        `credential_name` opens. A job that has not started `timeout` seconds after its admission fails and
        never runs; one that has cost `max_cost` dollars is ended. With `wait` the call returns once it has
        started: for a deployment, once a replica has claimed it. Raises UserError, NotFound, Refused, AuthError,
        JobSubmissionUncertain when nobody knows whether it was accepted, and with `wait` as `Job.wait_for_claim`.
        """
        asked = Asking(
            image, command, template, directory, name, env, gpu, cpus, memory, spot, credential_name, cloud_config,
            secrets, timeout, max_runtime, max_cost,
        )  # fmt: skip
        if deployment is not None:
            return self._to_deployment(deployment, workload_id, asked, wait=wait)
        if workload_id is not None:
            raise UserError("`workload_id` is for jobs of a deployment", hint="add `deployment=`", code="bad-argument")
        job = self._to_machine(asked)
        if wait:
            job.wait_for_start()
        return job

    def get(self, job_id: str) -> Job:
        """Return the handle of a job that was submitted before. Raises NotFound."""
        workload = self.jobs.show(job_id).workload
        return Job(self, workload.id, revision=workload.submission_revision, stop=self._stop)

    def list(
        self, *, states: Sequence[JobState | str] = (), limit: int = 200, all_projects: bool = True
    ) -> Sequence[Workload]:
        """List jobs, the newest first; a limit of 0 means all of them. Raises UserError on an unknown state."""
        try:
            wanted = [JobState(state) for state in states]
        except ValueError as error:
            raise UserError(f"{error}", hint=f"one of {', '.join(JobState)}", code="bad-state") from error
        return self.jobs.list(all_projects=all_projects, states=wanted, limit=limit).jobs

    def status(self, job_id: str) -> Status:
        """Return where a job stands. Raises NotFound."""
        return Job(self, job_id, stop=self._stop).status()

    def get_deployment(self, name: str) -> DeploymentStatus:
        """Return a deployment: how many of its replicas are ready, and the jobs that hold their slots.

        Raises NotFound.
        """
        return self.deployments.show(name).deployment

    def list_deployments(self) -> Sequence[DeploymentStatus]:
        """Return all deployments, by name."""
        return self.deployments.list().deployments

    def _to_machine(self, asked: Asking) -> Job:
        settings, project, tag = self._line.settings, self._line.project, self._tag()

        def made(aj_id: str) -> JobSpec:
            return spec(asked, aj_id, settings, project, tag)

        wanted = made(submissions.draw_id())
        try:
            ticket = self.submissions.submit(wanted, Mode.DIRECT, wait=True, again=made).ticket
        except OutcomeUnknown as error:
            raise self._uncertain(wanted.id, error) from error
        if ticket.state is TicketState.COMPLETED:
            return Job(self, ticket.id, stop=self._stop)
        if ticket.error is not None:
            raise errors.error(ticket.error)
        raise AjError(f"submission {ticket.id} was {ticket.state}", code="not-submitted")

    def _to_deployment(self, deployment: str, workload_id: str | None, asked: Asking, *, wait: bool) -> Job:
        if extra := _of_its_own(asked):
            raise UserError(
                f"`{extra}`: image, command, resources and buckets of a targeted job come from deployment"
                f" `{deployment}`",
                hint=f"leave it out, or `aj deployment upgrade {deployment}`",
                code="targeted",
            )
        job_id, tag = workload_id or submissions.draw_id(), self._tag()
        targeting = Targeting(job_id, draw_nonce(), asked.timeout, tag.agent, tag.session, tag.title)
        try:
            admitted = self.deployments.submit(deployment, targeting).workload
        except OutcomeUnknown as error:
            raise self._uncertain(job_id, error) from error
        job = Job(self, job_id, revision=admitted.submission_revision, stop=self._stop)
        if wait:
            job.wait_for_claim()
        return job

    def _tag(self) -> Tag:
        """Say which coding agent asks, if one does."""
        settings = self._line.settings
        who = agents.caller(settings, agents.terminals())
        return agents.tag(who, settings, paths.working_directory(settings))

    def _uncertain(self, job_id: str, error: OutcomeUnknown) -> JobSubmissionUncertain:
        job = Job(self, job_id, stop=self._stop)
        return JobSubmissionUncertain(error.message, job=job, hint=error.hint, details=error.details)


def _of_its_own(asked: Asking) -> str | None:
    """Return the first argument that a job of a deployment cannot have, or None."""
    plain = Asking()
    names = ("image", "command", "template", "directory", "name", "env", "gpu", "cpus", "memory", "spot")
    more = ("credential_name", "cloud_config", "secrets", "max_runtime", "max_cost")
    return next((name for name in (*names, *more) if getattr(asked, name) != getattr(plain, name)), None)
