"""From a planned job to a job of a workspace: what must be there first, then the job itself, put once.

The code is delivered, the image and the containers are registered; all of that is named by its content, so
that doing it again changes nothing. Until the job itself is put, nothing can be running: whatever goes wrong
before is a plain failure. After that, a lost answer means that nobody knows, and the job is looked up by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from aj.azure import datastores, environments, fan, jobs
from aj.azure.arm import Session, Workspace
from aj.azure.chosen import Chosen
from aj.azure.jobs import Job
from aj.azure.memory import Memory
from aj.base.clock import rfc3339
from aj.base.errors import AjError, NotFound, OutcomeUnknown, Refused, RemoteError, TimedOut, Unavailable
from aj.base.noun import dataclass
from aj.model import commandjob
from aj.model.code import CodeRef
from aj.model.commandjob import Code, Store
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.step import Kind, Step
from aj.net import refusal

ROLE = "Storage Blob Data Contributor"
_DATASTORE = "AzureBlob"
_PLACE = re.compile(r"(?:(?P<tenant>[^/]+)/)?(?P<subscription>[^/]+)/(?P<group>[^/]+)/(?P<name>[^/]+)\Z")


@dataclass(frozen=True)
class Parcel:
    """What has to be where the jobs of a workspace can fetch it: the archive, a file, and the bootstrap's bytes."""

    archive: Path
    code: Code
    size_bytes: int
    bootstrap: bytes = field(repr=False)


@dataclass(frozen=True)
class Delivered:
    """Where the two are: paths in the workspace's own container. `sent_bytes` of the archive left just now."""

    archive: str
    bootstrap: str
    sent_bytes: int | None = field(default=None, compare=False)


class Delivers(Protocol):
    """Brings a parcel into a workspace's own container."""

    def __call__(
        self, session: Session, workspace: Workspace, parcel: Parcel, *, tell: Callable[[Step], None]
    ) -> Delivered:
        """Bring what is not there yet, and return where both are. Raises AjError; nothing was submitted then."""


@dataclass(frozen=True)
class Means:
    """What a submission needs of the house.

    `session` opens a session for a job (None: by the user's own settings) in a tenant (None: the user's own);
    `chosen` reads the settings of a job's project; `archive` finds the file of packed code; `tell` passes on what
    happens to the submission of an AJ ID.
    """

    session: Callable[[JobSpec | None, str | None], Session]
    chosen: Callable[[JobSpec], Chosen]
    deliver: Delivers
    archive: Callable[[CodeRef], Path]
    bootstrap: bytes = field(repr=False)
    memory: Memory
    tell: Callable[[str, Step], None]


@dataclass(frozen=True)
class Image:
    """An image as a workspace knows it. Without `is_there` it must still be registered under the version."""

    name: str
    version: str
    environment_id: str
    is_there: bool


@dataclass(frozen=True)
class Sent:
    """A job that is there, and how many bytes of its archive left for it."""

    job: Job
    uploaded_bytes: int | None


@dataclass(frozen=True)
class Planned:
    """A whole submission. `unregistered` are the containers that its workspace does not know yet.

    `numbers` tell what the place was chosen by, when it was chosen by numbers.
    """

    service: str
    session: Session = field(repr=False)
    workspace: Workspace
    name: str
    aj_id: str
    body: Mapping[str, Json] = field(repr=False)
    image: Image
    parcel: Parcel
    unregistered: tuple[Store, ...] = ()
    tenant: str | None = None
    numbers: str | None = None


# Reading what is there


def image(session: Session, workspace: Workspace, name: str) -> Image:
    """Look for an image among the environments of a workspace.

    Raises Refused when its version holds another image, and what reading raised, with the image and the step.
    """
    version = commandjob.environment_version(name)
    try:
        found = environments.find(session, workspace, commandjob.ENVIRONMENT, version)
    except AjError as error:
        raise _with(error, f"image {name} could not be looked up: {error.message}") from error
    if found is None:
        return Image(name, version, _environment_id(workspace, version), is_there=False)
    if found.image != name:
        raise Refused(
            f"environment {commandjob.ENVIRONMENT}:{version} of workspace {workspace} holds the image {found.image}, "
            f"not {name}",
            code="other-image",
            hint=f"ask who registered it, or write {name} in another way, as with its digest",
        )
    return Image(name, version, commandjob.checked_environment_id(found.id), is_there=not found.is_archived)


def _environment_id(workspace: Workspace, version: str) -> str:
    return f"{workspace.id}/environments/{commandjob.ENVIRONMENT}/versions/{version}"


def unregistered(session: Session, workspace: Workspace, stores: Sequence[Store]) -> tuple[Store, ...]:
    """Return the containers that a workspace does not know yet, each once.

    Raises Refused when a name that we would use holds something else.
    """
    wanted = {store.datastore: store for store in stores}
    return tuple(store for store in wanted.values() if not _is_known(session, workspace, store))


def _is_known(session: Session, workspace: Workspace, store: Store) -> bool:
    try:
        found = datastores.find(session, workspace, store.datastore)
    except Refused as error:
        raise _forbidden(error, store) from error
    if found is None:
        return False
    if (found.kind, found.account, found.container) != (_DATASTORE, store.account, store.container):
        has = f"{found.kind} {found.account}/{found.container}"
        raise Refused(
            f"datastore {store.datastore} of workspace {workspace} is {has}, not {store.account}/{store.container}",
            code="other-datastore",
            hint="ask who registered it; it is never overwritten",
        )
    return True


# Changing what is there


def send(planned: Planned, means: Means) -> Sent:
    """Submit, and return the job with what was sent for it. The same again returns the same job.

    Raises OutcomeUnknown when the job may have arrived; any other error means that it has not.
    """
    left: list[str] = []
    try:
        return _Sending(planned, means, left).carry_out()
    except OutcomeUnknown:
        raise  # what to do next is to look, not to try again
    except AjError as error:
        if left:
            error.details["left"] = tuple(left)
            error.hint = error.hint or f"the next try uses what is there already: {', '.join(left)}"
        raise


@dataclass(frozen=True)
class _Sending:
    planned: Planned
    means: Means
    left: list[str]

    @property
    def session(self) -> Session:
        return self.planned.session

    def carry_out(self) -> Sent:
        try:
            delivered, environment_id = self._prepare()
            known = jobs.find(self.session, self.planned.workspace, self.planned.name)
        except (Unavailable, OutcomeUnknown, TimedOut) as error:
            raise _definite(error) from error
        job = self._put(environment_id) if known is None else checked(known, self.planned.aj_id)
        self._tell(Kind.DONE, f"submitted as {job.name}")
        return Sent(job, delivered.sent_bytes)

    def _prepare(self) -> tuple[Delivered, str]:
        """Bring everything there that the job names; return what was delivered, and the id of its environment."""
        planned, parcel = self.planned, self.planned.parcel
        found = self.means.deliver(
            self.session, planned.workspace, parcel, tell=lambda step: self.means.tell(planned.aj_id, step)
        )
        if found != Delivered(parcel.code.archive, parcel.code.bootstrap):
            raise AjError(f"the code was brought to {found.archive}, and the job looks for {parcel.code.archive}")
        self.left.extend((found.archive, found.bootstrap))
        environment_id = self._register_image()
        for store in planned.unregistered:
            self._register_store(store)
        return found, environment_id

    def _register_image(self) -> str:
        image, workspace = self.planned.image, self.planned.workspace
        if image.is_there:
            return image.environment_id
        self._tell(Kind.ENVIRONMENT, f"registering image {image.name}")
        found = environments.put(self.session, workspace, commandjob.ENVIRONMENT, image.version, image=image.name)
        self.left.append(f"environment {commandjob.ENVIRONMENT}:{image.version}")
        return commandjob.checked_environment_id(found.id)

    def _register_store(self, store: Store) -> None:
        self._tell(Kind.STORAGE, f"registering container {store.container} of account {store.account}")
        suffix = self.session.cloud.storage_suffix
        try:
            datastores.put(
                self.session,
                self.planned.workspace,
                store.datastore,
                account=store.account,
                container=store.container,
                endpoint=suffix,
            )
        except Refused as error:
            raise _forbidden(error, store) from error
        self.left.append(f"datastore {store.datastore}")

    def _put(self, environment_id: str) -> Job:
        planned = self.planned
        self._tell(Kind.SUBMIT, f"submitting {planned.name} to workspace {planned.workspace}")
        try:
            body = with_environment(planned.body, environment_id)
            return jobs.put(self.session, planned.workspace, planned.name, body)
        except OutcomeUnknown as error:
            raise self._lost(error) from error
        except Unavailable as error:
            raise _definite(error) from error
        except RemoteError as error:
            if error.code == "bad-answer":  # the service said yes, in words that we do not understand
                raise self._lost(error) from error
            raise self._refused(error) from error
        except (Refused, NotFound) as error:
            raise self._refused(error) from error

    def _lost(self, error: AjError) -> OutcomeUnknown:
        planned = self.planned
        details = {
            **error.details,
            "backend": planned.service,
            "workspace": planned.workspace.id,
            "job": planned.name,
            "at": rfc3339(self.session.clock.now()),
            "reason": error.message,
        }
        return OutcomeUnknown(
            f"the answer to the submission of {planned.name} was lost; it may be running", details=details
        )

    def _refused(self, error: AjError) -> AjError:
        """The service's own words, and the numbers by which the place was chosen."""
        if self.planned.numbers is None:
            return error
        return _with(error, f"{error.message} (chosen by: {self.planned.numbers})")

    def _tell(self, kind: Kind, detail: str) -> None:
        self.means.tell(self.planned.aj_id, Step(kind, detail))


def with_environment(body: Mapping[str, Json], environment_id: str) -> dict[str, Json]:
    """Return a body with the id of the environment as the service spells it."""
    properties = body["properties"]
    assert isinstance(properties, Mapping)
    return {**body, "properties": {**properties, "environmentId": environment_id}}


def checked(job: Job, aj_id: str) -> Job:
    """Return a job that is ours. Raises Refused when another has its name."""
    if job.aj_id == aj_id:
        return job
    owner = f"of the AJ ID {job.aj_id}" if job.aj_id else "not made by aj"
    raise Refused(
        f"there is a job {job.name} already, {owner}: it is left alone",
        code="name-taken",
        hint="submit again: another try has another name",
    )


# Places


def place(workspace: Workspace, tenant: str | None) -> str:
    """Return the place of a handle: the workspace, behind the tenant when one was chosen."""
    parts = (workspace.subscription, workspace.group, workspace.name)
    return "/".join((tenant, *parts) if tenant else parts)


def at(place: str) -> tuple[Workspace, str | None]:
    """Return the workspace and the tenant of a handle's place. Raises NotFound when it is none."""
    found = _PLACE.match(place)
    if not found:
        raise NotFound(f"`{place}` is not the place of a job: subscription, resource group and workspace are due")
    return Workspace(found["subscription"], found["group"], found["name"]), found["tenant"]


def remember(planned: Planned, memory: Memory) -> Planned:
    """Keep where a submission is about to be sent, to look for it there whatever happens then."""
    memory.keep("sent", planned.aj_id, value=place(planned.workspace, planned.tenant))
    return planned


def where_sent(aj_id: str, memory: Memory) -> tuple[Workspace, str | None] | None:
    """Return where a submission was sent, as far as that is remembered."""
    found = memory.recall("sent", aj_id)
    return at(found) if found else None


def look_up(session: Session, workspace: Workspace, spec: JobSpec, *, is_certain: bool) -> Job | None:
    """Look for the job of a submission; None when there is none for certain.

    Raises Refused when another job has its name, and OutcomeUnknown when it is not there, and without
    `is_certain` nobody knows that it was sent there.
    """
    found = jobs.find(session, workspace, spec.name)
    if found is not None:
        return checked(found, spec.id)
    if is_certain:
        return None
    raise OutcomeUnknown(
        f"workspace {workspace} has no job {spec.name}, and whether it was sent there is not remembered",
        code="not-remembered",
        details={"workspace": workspace.id, "job": spec.name},
    )


# Errors


def _definite(error: AjError) -> RemoteError:
    """Say that nothing was submitted, with an error that cannot be taken for an unknown outcome."""
    return RemoteError(
        f"nothing was submitted: {error.message}", hint=error.hint, code=error.code, details=error.details
    )


def _with(error: AjError, words: str) -> AjError:
    """The same kind of error with other words."""
    return fan.type_of(error)(words, hint=error.hint, code=error.code, details=error.details)


def _forbidden(error: Refused, store: Store) -> AjError:
    """Name the role that who mounts a container needs, when a right is what was missing."""
    if refusal.status_of(error) != 403:
        return error
    hint = f"role {ROLE} on account {store.account} for whoever the job runs as"
    return Refused(error.message, hint=hint, code=error.code, details=error.details)
