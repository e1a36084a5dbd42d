"""Accepting a submission for good: code packed, archive and ticket durable, and only then is it told.

What was on disk at that moment is what runs, whatever is edited later. How it is carried out stands in
`attempt`, when in `worker`.
"""

from __future__ import annotations

import contextlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from aj.backend.protocol import Traits
from aj.base import crash, proc
from aj.base.clock import rfc3339
from aj.base.digest import sha256
from aj.base.errors import AjError, Refused, UserError
from aj.base.noun import dataclass
from aj.engine.desk import Desk
from aj.engine.means import Means
from aj.engine.records import fault_of, record_of
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.record import RecordState
from aj.model.ticket import Mode, Ticket, TicketState
from aj.store import journal, tickets
from aj.wire import codec
from aj.wire.messages import Submission

GIT_LIMIT_S = 2.0  # what git knows is a help for later, not worth a longer wait
_KEY = re.compile(r"[0-9a-f]{8}\Z")


@dataclass(frozen=True)
class Accepted:
    """A stored ticket. `is_new` is False when the same call had been accepted before."""

    ticket: Ticket
    is_new: bool
    warnings: tuple[str, ...] = ()


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
    return sha256(json.dumps(codec.dump(submission), sort_keys=True).encode()).hexdigest()


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
        session_title=spec.session_title,
        request=spec,
    )
    if not traits.moves_code or not spec.brings_code:
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

    kept = means.archives.digests()
    crash.point("accept.before-archive")
    with ThreadPoolExecutor(1) as beside:
        git = beside.submit(_git, spec, means)
        with means.archives.claim(pack) as code:
            crash.point("accept.after-archive")
            reused = code.digest in kept if means.places.traits(spec.service).driven else None
            whole = replace(ticket, code=code, code_reused=reused, git=git.result())
            return Accepted(_put_down(desk, whole), True, warnings)


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
