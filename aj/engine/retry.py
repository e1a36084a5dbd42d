"""A failed submission once more: a new ticket with a new id, the stored request and the stored code."""

from __future__ import annotations

import os
from dataclasses import replace

from aj.base.clock import rfc3339
from aj.base.errors import OutcomeUnknown, Refused
from aj.engine.desk import Desk
from aj.engine.means import Means
from aj.engine.submit import Accepted
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import archives, tickets


def retry(name: str, desk: Desk, means: Means, *, force: bool) -> Accepted:
    """Put a failed ticket's request at the end of the line again, once.

    Raises NotFound; Refused when the ticket did not fail or was retried already; OutcomeUnknown, unless
    forced, when its job may exist; AjError when the disk refuses: there is no new ticket then.
    """
    with means.entrance.hold(desk.find(name).id):
        old = desk.whole(name)
        request = _may_be_retried(old, desk, force=force)
        new_id = draw(means)
        spec = replace(request, id=new_id, name=_renamed(request.name, old.id, new_id))
        ticket = replace(
            _fresh(old),
            ticket=tickets.name_of(new_id),
            id=new_id,
            name=spec.name,
            created_at=rfc3339(means.clock.now()),
            request=spec,
        )
        stored = _store(ticket, desk, means)
        desk.mark_retried(name, stored.ticket)
    doubt = old.outcome is Outcome.UNKNOWN
    return Accepted(stored, True, (f"the job of {name} may exist: now it may exist twice",) if doubt else ())


def _may_be_retried(old: Ticket, desk: Desk, *, force: bool) -> JobSpec:
    again = next((ticket.ticket for ticket in desk.all() if ticket.retried_from == old.ticket), old.retried_as)
    if again:
        raise Refused(f"{old.ticket} was retried already, as {again}", code="retried", hint=f"`aj queue show {again}`")
    if old.state is not TicketState.FAILED:
        raise Refused(f"{old.ticket} is {old.state}: only a failed submission can be retried", code="not-failed")
    if old.outcome is Outcome.UNKNOWN and not force:
        raise OutcomeUnknown(
            f"the job of {old.ticket} may exist", hint=f"`aj queue reconcile {old.ticket}`, or retry with `--force`"
        )
    if old.request is None:
        raise Refused(f"the request of {old.ticket} is no longer kept", code="request-gone", hint="`aj run` again")
    return old.request


def draw(means: Means) -> str:
    """Return an AJ ID that nobody has: 8 hexadecimal digits of a secure source."""
    while means.ids.holds(aj_id := os.urandom(4).hex()):
        pass
    return aj_id


def _renamed(name: str, old_id: str, new_id: str) -> str:
    return name.removesuffix(old_id) + new_id if name.endswith(old_id) else name


def _fresh(old: Ticket) -> Ticket:
    """The ticket as it was before its first try, to be queued."""
    return replace(
        old,
        mode=Mode.QUEUED,
        state=TicketState.QUEUED,
        outcome=None,
        started_at=None,
        finished_at=None,
        detail=None,
        error=None,
        result=None,
        retried_from=old.ticket,
        retried_as=None,
        body=None,
        code_reused=None if old.code_reused is None else True,
    )


def _store(ticket: Ticket, desk: Desk, means: Means) -> Ticket:
    code = ticket.code
    if code is None:
        return desk.store(ticket)

    def kept() -> CodeRef:
        from aj.pack import archive  # it is imported with the first code that there is

        if archive.find(means.layout.code, code) is None:
            raise archives.gone(code.digest)
        return code

    with means.archives.claim(kept):
        return desk.store(ticket)
