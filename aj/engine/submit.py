"""From a request to a job: accepting it for good, and carrying it out once.

Accepting packs the code, stores archive and ticket, and only then tells the ticket: what was on disk
at that moment is what runs. Carrying out writes `intended` before anything is sent and exactly one
end after it. An error that can only mean that nothing happened is a failure; anything else, once
something may have been sent, is unknown, and nobody tries again by himself.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from aj.backend.protocol import Backend, Traits
from aj.base import crash, proc, redact
from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, OutcomeUnknown, Refused, TimedOut, Unavailable, UserError
from aj.base.settings import Settings
from aj.engine.desk import Desk, Ending
from aj.model.code import CodeRef
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.record import Record, RecordState
from aj.model.ticket import Fault, Mode, Outcome, Submitted, Ticket, TicketState
from aj.model.workload import Workload
from aj.store import journal, tickets
from aj.store.archives import Archives
from aj.store.layout import Layout
from aj.version import VERSION
from aj.wire import codec
from aj.wire.messages import Submission

GIT_LIMIT_S = 2.0  # what git knows is a help for later, not worth a longer wait
_KEY = re.compile(r"[0-9a-f]{8}\Z")


class Jobs(Protocol):
    """The jobs that our own engine drives, as submissions need them.

    `open_project` is called with a project's key before one of its jobs is changed.
    """

    open_project: Callable[[str], object] | None

    def admit(
        self, spec: JobSpec, code: CodeRef | None, *, ticket: str, project_key: str, accepted_at: str, mode: Mode
    ) -> Handle:
        """Make a job durable, so that it will run. The same job again gives the same handle.

        Raises AjError, and then there is no such job.
        """

    def find(self, aj_id: str) -> Workload | None:
        """Return a job by its AJ ID; None when there is definitely none."""

    def adopt(self, project_key: str) -> None:
        """Take up the unfinished jobs of a project."""

    def running(self) -> int:
        """How many hold a place."""

    def queued(self) -> int:
        """How many wait for one."""

    def unfinished_projects(self) -> set[str]:
        """Return the keys of the projects with a job that needs a daemon."""

    def digests(self) -> set[str]:
        """Return the archives that a job may still need."""

    def stop(self) -> None:
        """Let go of all jobs; they go on under their supervisors."""


class Places(Protocol):
    """Where a service's name leads."""

    def traits(self, service: str) -> Traits:
        """Return the facts about a service. Raises UserError when there is none of that name."""

    def backend(self, service: str) -> Backend:
        """Return a handed-off service."""


@dataclass(frozen=True)
class Packed:
    """An archive, and what its user should know about the selection."""

    code: CodeRef
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Means:
    """What a submission needs of the house."""

    layout: Layout
    clock: Clock
    settings: Settings
    debug: bool
    places: Places
    jobs: Jobs
    pack: Callable[[JobSpec], Packed]
    archives: Archives
    ids: journal.KnownIds
    entrance: Entrance


@dataclass(frozen=True)
class Accepted:
    """A stored ticket. `is_new` is False when the same call had been accepted before."""

    ticket: Ticket
    is_new: bool
    warnings: tuple[str, ...] = ()


class Entrance:
    """Lets one call for each key in at a time, so that a call and its repetition do not pass each other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: set[str] = set()

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Wait until nobody else is inside with this key, and go in."""
        with self._changed:
            self._changed.wait_for(lambda: key not in self._inside)
            self._inside.add(key)
        try:
            yield
        finally:
            with self._changed:
                self._inside.remove(key)
                self._changed.notify_all()

    def wait_empty(self, timeout_s: float | None) -> bool:
        """Wait until nobody is inside; False when the time is over first."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._inside, timeout_s)

    @property
    def is_empty(self) -> bool:
        with self._changed:
            return not self._inside


# Accepting


def accept(desk: Desk, submission: Submission, means: Means) -> Accepted:
    """Take a submission for good: archive and ticket are durable when this returns.

    Raises UserError on a request that cannot be, Refused on a taken id or key, AjError when the code
    cannot be packed or the disk refuses; there is no ticket then.
    """
    traits = _check(submission, means)
    body = body_of(submission)
    with means.entrance.hold(submission.key):
        known = _accepted_before(desk, submission, body)
        if known is not None:
            return Accepted(known, is_new=False)
        if means.ids.holds(submission.key):
            raise Refused(f"the id {submission.key} is taken", code="id-taken", hint="the next try draws another one")
        return _store(desk, submission, body, traits, means)


def _check(submission: Submission, means: Means) -> Traits:
    spec = submission.spec
    if not _KEY.match(submission.key) or spec.id != submission.key:
        raise UserError(
            f"Submission.key: {submission.key!r} is not the job's own id of 8 hexadecimal digits", code="bad-field"
        )
    traits = means.places.traits(spec.service)
    if not traits.submits:
        raise UserError(
            f"this release checks and renders `{spec.service}` jobs, but does not send them yet",
            code="not-submitted",
            hint="`aj run -d` shows what would be sent",
        )
    return traits


def body_of(submission: Submission) -> str:
    """Return the SHA-256 of what was asked for."""
    return hashlib.sha256(json.dumps(codec.dump(submission), sort_keys=True).encode()).hexdigest()


def _accepted_before(desk: Desk, submission: Submission, body: str) -> Ticket | None:
    ticket = desk.get(tickets.name_of(submission.key))
    if ticket is not None and ticket.body != body:
        raise Refused(f"the key {submission.key} belongs to another request", code="key-reused")
    return ticket


def _store(desk: Desk, submission: Submission, body: str, traits: Traits, means: Means) -> Accepted:
    spec = submission.spec
    ticket = Ticket(
        ticket=tickets.name_of(spec.id),
        id=spec.id,
        mode=submission.mode,
        state=TicketState.QUEUED,
        name=spec.name,
        service=spec.service,
        template=spec.template,
        sequence=0,
        created_at=rfc3339(means.clock.now()),
        project=desk.key,
        env_names=tuple(sorted(spec.env)),
        body=body,
        agent=spec.agent,
        session=spec.session,
        request=spec,
    )
    if not traits.moves_code:
        return Accepted(_put_down(desk, replace(ticket, git=_git(spec, means))), is_new=True)
    try:
        return _store_with_code(desk, ticket, spec, means)
    except AjError as error:
        if ticket.mode is Mode.DIRECT:
            _tell_of_failure(desk, ticket, spec, error, means)
        raise


def _store_with_code(desk: Desk, ticket: Ticket, spec: JobSpec, means: Means) -> Accepted:
    warnings: tuple[str, ...] = ()

    def pack() -> CodeRef:
        nonlocal warnings
        packed = means.pack(spec)
        warnings = packed.warnings
        return packed.code

    crash.point("accept.before-archive")
    with ThreadPoolExecutor(1) as beside:
        git = beside.submit(_git, spec, means)
        with means.archives.claim(pack) as code:
            crash.point("accept.after-archive")
            return Accepted(_put_down(desk, replace(ticket, code=code, git=git.result())), True, warnings)


def _put_down(desk: Desk, ticket: Ticket) -> Ticket:
    crash.point("accept.before-ticket")
    stored = desk.store(ticket)
    crash.point("accept.after-ticket")
    return stored


def _tell_of_failure(desk: Desk, ticket: Ticket, spec: JobSpec, error: AjError, means: Means) -> None:
    """A direct attempt leaves a record even when it never became a ticket."""
    record = record_of(ticket, spec, desk.path, RecordState.FAILED, now=means.clock.now(), error=fault_of(error))
    with contextlib.suppress(AjError):  # the disk that refuses here is what the caller is told of anyway
        desk.note(journal.append(means.layout, desk.key, record))


def _git(spec: JobSpec, means: Means) -> dict[str, Json] | None:
    """Ask git for the commit of the submitted tree and whether it was changed; None where there is none."""
    here = Path(spec.directory)
    if not any((folder / ".git").exists() for folder in (here, *here.parents)):
        return None
    # no index is written, and no program of the repository's own settings runs
    argv = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    try:
        found = proc.run(argv, cwd=here, env={**means.settings.env, "GIT_OPTIONAL_LOCKS": "0"}, timeout_s=GIT_LIMIT_S)
    except (OSError, TimeoutError):
        return None
    lines = found.out.decode("utf-8", "replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    if found.code or commit is None:
        return None
    is_dirty = any(not line.startswith("#") for line in lines)
    return {"commit": None if commit == "(initial)" else commit, "dirty": is_dirty}


# Carrying out


class Attempt:
    """The one try to submit one ticket that is in work."""

    def __init__(self, ticket: Ticket, desk: Desk, means: Means) -> None:
        self._ticket = ticket
        self._desk = desk
        self._means = means
        self._may_have_been_sent = False
        self._name: str | None = None  # what the job is called over there, once that is settled

    def carry_out(self) -> Ending:
        """Submit, and return how that ended. Lets only the unexpected through."""
        spec = self._ticket.request
        if spec is None:
            return _failed(Refused(f"the request of {self._ticket.ticket} can no longer be read"))
        try:
            self._name, send = self._plan(spec)
            self._note(spec, RecordState.INTENDED)
        except AjError as error:
            return self._has_failed(spec, error)
        crash.point("worker.after-intended")
        self._may_have_been_sent = True
        try:
            handle = send()
        except AjError as error:
            return self._has_failed(spec, error) if is_definite(error) else self._is_unknown(spec, error)
        crash.point("worker.after-submit")
        return self._was_submitted(spec, handle)

    def unexpected(self, error: Exception) -> Ending:
        """Say how a try ended that broke off with an error of the program itself."""
        words = AjError(f"{type(error).__name__}: {error}", code="unexpected")
        spec = self._ticket.request
        if spec is None or not self._may_have_been_sent:
            return self._has_failed(spec, words)
        return self._is_unknown(spec, words)

    def _plan(self, spec: JobSpec) -> tuple[str, Callable[[], Handle]]:
        """Return the name the job will have and the call that sends it. Sends nothing."""
        means, ticket = self._means, self._ticket
        if means.places.traits(spec.service).driven:
            return spec.id, lambda: means.jobs.admit(
                spec,
                ticket.code,
                ticket=ticket.ticket,
                project_key=self._desk.key,
                accepted_at=ticket.created_at,
                mode=ticket.mode,
            )
        backend = means.places.backend(spec.service)
        request = backend.plan(spec, ticket.code, accepted_at=ticket.created_at.replace("Z", "+00:00"))
        return request.name, lambda: backend.submit(request)

    def _note(
        self,
        spec: JobSpec,
        state: RecordState,
        *,
        handle: Handle | None = None,
        error: Fault | None = None,
    ) -> None:
        record = record_of(
            self._ticket,
            spec,
            self._desk.path,
            state,
            now=self._means.clock.now(),
            azure_name=handle.name if handle else self._name,
            handle=handle,
            error=error,
        )
        self._desk.note(journal.append(self._means.layout, self._desk.key, record))

    def _was_submitted(self, spec: JobSpec, handle: Handle) -> Ending:
        result = Submitted(azure_name=handle.name, handle=str(handle))
        try:
            self._note(spec, RecordState.SUBMITTED, handle=handle)
        except AjError as error:
            words = f"submitted as {handle.name}, but the record of it is missing: {error.message}"
            return Ending(
                TicketState.FAILED, Outcome.UNKNOWN, result, words, fault_of(unknown(self._ticket.ticket, words))
            )
        crash.point("worker.after-submitted")
        return Ending(TicketState.COMPLETED, Outcome.SUBMITTED, result)

    def _has_failed(self, spec: JobSpec | None, error: AjError) -> Ending:
        ending = _failed(error)
        return self._with_record(spec, RecordState.FAILED, ending)

    def _is_unknown(self, spec: JobSpec, error: AjError) -> Ending:
        found = error if isinstance(error, OutcomeUnknown) else unknown(self._ticket.ticket, error.message, error)
        if found.hint is None:
            found.hint = _reconcile(self._ticket.ticket)
        ending = Ending(TicketState.FAILED, Outcome.UNKNOWN, detail=found.message, error=fault_of(found))
        return self._with_record(spec, RecordState.UNKNOWN, ending)

    def _with_record(self, spec: JobSpec | None, state: RecordState, ending: Ending) -> Ending:
        if spec is None:
            return ending
        try:
            self._note(spec, state, error=ending.error)
        except AjError as error:
            return replace(ending, detail=f"{ending.detail}; the record of it is missing: {error.message}")
        return ending


def is_definite(error: AjError) -> bool:
    """Tell whether an error of a submission means for certain that there is no job.

    A service that broke off or fell silent may have made one: no answer is not a no.
    """
    return not isinstance(error, OutcomeUnknown | Unavailable | TimedOut)


def unknown(ticket: str, words: str, cause: AjError | None = None) -> OutcomeUnknown:
    """Say that a submission may have happened, and how to find out."""
    return OutcomeUnknown(words, hint=_reconcile(ticket), details=cause.details if cause else None)


def _reconcile(ticket: str) -> str:
    return f"`aj queue reconcile {ticket}` finds out what became of it"


def _failed(error: AjError) -> Ending:
    return Ending(TicketState.FAILED, Outcome.FAILED, detail=redact.text(error.message), error=fault_of(error))


# Records


def fault_of(error: AjError) -> Fault:
    """Return an error as it is kept: without secrets, with its place among the details."""
    details: dict[str, object] = dict(error.details)
    if error.place is not None:
        details |= {"file": error.place.file, "line": error.place.line, "column": error.place.column}
    return Fault(
        type=type(error).__name__,
        code=error.code,
        message=redact.text(error.message),
        hint=error.hint,
        details={name: _plain(value) for name, value in details.items()},
    )


def _plain(value: object) -> Json:
    if isinstance(value, str):
        return redact.text(value)
    try:
        return codec.dump(value)
    except (TypeError, ValueError):
        return str(value)


def record_of(
    ticket: Ticket,
    spec: JobSpec,
    project: str | None,
    state: RecordState,
    *,
    now: float,
    azure_name: str | None = None,
    handle: Handle | None = None,
    error: Fault | None = None,
    outcome: Outcome | None = None,
    note: str | None = None,
) -> Record:
    """Return a line for the journal. Values of environment variables are not in it."""
    settled = state is not RecordState.INTENDED
    return Record(
        ts=rfc3339(now),
        id=ticket.id,
        ticket=ticket.ticket,
        mode=ticket.mode.value,
        state=state,
        project=project,
        template=spec.template,
        service=spec.service,
        name=spec.name,
        outcome=(outcome.value if outcome else state.value) if settled else None,
        azure_name=azure_name,
        handle=str(handle) if handle else None,
        experiment=spec.experiment,
        target=_target(spec),
        sku=spec.sku,
        shape=spec.shape,
        image=spec.image,
        command=redact.text(shlex.join(spec.argv)),
        env_names=ticket.env_names,
        code=ticket.code,
        git=ticket.git,
        error=error,
        note=note,
        agent=ticket.agent,
        session=ticket.session,
        version=VERSION,
    )


def _target(spec: JobSpec) -> dict[str, Json]:
    """The plain words of the template's `target`: where it goes, as far as the user said so."""
    target = spec.config.get("target")
    if not isinstance(target, Mapping):
        return {}
    return {
        key: redact.text(value) if isinstance(value, str) else value
        for key, value in target.items()
        if isinstance(value, str | int | float | bool)
    }
